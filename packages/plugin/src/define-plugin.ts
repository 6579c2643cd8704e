import { PackageError } from './error.js';
import type { PackageTool, PluginPackage, ToolDefinition } from './package.js';

/** A tool with a function instead of the text of its code. */
export interface PluginTool<Args = never> extends ToolDefinition {
  /**
   * Runs the tool. Its text is what the sandbox gets, so it may use its argument, the sandbox's globals and
   * the plugin's `helpers`, and nothing else of the module it is written in.
   */
  execute(args: Args): unknown;
}

/** A plugin as its author writes it. */
export interface PluginSource extends Omit<PluginPackage, 'tools'> {
  tools: PluginTool[];
  /** Functions and JSON values that a tool's code can use by these names; it gets those that it mentions. */
  helpers?: Record<string, unknown>;
}

/** Turns functions into a package: `execute` of each tool becomes its `executorCode`. */
export function definePlugin({ helpers = {}, tools, ...rest }: PluginSource): PluginPackage {
  const declarations = new Map(Object.entries(helpers).map(([name, value]) => [name, declare(name, value)]));
  const written = tools.map((tool, index): PackageTool => {
    const { execute, ...definition } = tool;
    const call = `return (${sourceOf(execute, `/tools/${index}/execute`)})(args);`;
    return { ...definition, executorCode: [...needed(call, declarations), call].join('\n') };
  });
  return { ...rest, tools: written };
}

/** The declarations that a piece of code mentions, and those that these mention, in the order they were written. */
function needed(code: string, declarations: Map<string, string>): string[] {
  const found = new Set<string>();
  const texts = [code];
  for (const text of texts) {
    for (const word of text.match(/[\w$]+/g) ?? []) {
      const declaration = declarations.get(word);
      if (declaration === undefined || found.has(word)) continue;
      found.add(word);
      texts.push(declaration);
    }
  }
  return [...declarations].filter(([name]) => found.has(name)).map(([, declaration]) => declaration);
}

function declare(name: string, value: unknown): string {
  const place = `/helpers/${name}`;
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) throw new PackageError('PACKAGE_INVALID', 'is not a name', place);
  if (typeof value === 'function') return `const ${name} = ${sourceOf(value as () => unknown, place)};`;
  // Readable: a curator looks at it.
  const text = JSON.stringify(value, null, 2);
  if (text === undefined) throw new PackageError('PACKAGE_INVALID', 'is neither a function nor JSON', place);
  return `const ${name} = ${text};`;
}

/** The text of a function as an expression. */
function sourceOf(code: (...args: never[]) => unknown, place: string): string {
  if (typeof code !== 'function') throw new PackageError('PACKAGE_INVALID', 'expected a function', place);
  const text = Function.prototype.toString.call(code);
  if (/\{\s*\[native code\]\s*\}$/.test(text)) {
    throw new PackageError(
      'PACKAGE_INVALID',
      'a bound or built-in function has no text, write it out',
      place,
    );
  }
  if (text.startsWith('class')) throw new PackageError('PACKAGE_INVALID', 'a class is no function', place);
  if (isExpression(text)) return text;
  // A method such as `async execute(args) {…}`: as an expression it wants the word `function`.
  const [, isAsync = '', star = '', parameters = ''] =
    /^(async\s+)?(\*\s*)?(?:\[[^\]]*\]|'[^']*'|"[^"]*"|[^\s(]+)\s*(\([\s\S]*)$/.exec(text) ?? [];
  if (parameters === '') throw new PackageError('PACKAGE_INVALID', 'cannot read this function', place);
  return `${isAsync}function${star} ${parameters}`;
}

/** Whether the text of a function is a function or an arrow, rather than a method. */
function isExpression(text: string): boolean {
  if (/^(async\s+)?function\b/.test(text)) return true;
  if (/^(async\s+)?[\w$]+\s*=>/.test(text)) return true;
  // `async (args) => …` is an arrow, and `async(args) {…}` a method of that name.
  const open = /^(?:async\s*)?\(/.exec(text)?.[0];
  return open !== undefined && isArrow(text.slice(open.length - 1));
}

/** Whether `=>` follows the parameter list that `text` begins with. */
function isArrow(text: string): boolean {
  try {
    // Compiled, never run: a parameter list with a body in braces is not an expression without its arrow.
    new Function(`return (async ${text});`);
    return true;
  } catch {
    return false;
  }
}
