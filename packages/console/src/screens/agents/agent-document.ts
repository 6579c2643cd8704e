import { isCollection, isMap, isScalar, type Pair, parseDocument, stringify } from 'yaml';
import { locateInJson, placeOfMistake, type Range } from '../../ui/editor/json-pointer.ts';

/** How a person edits an agent's configuration. */
export type Format = 'json' | 'markdown';

export type Config = Record<string, unknown>;

/** What a text says: a configuration with the places of its members, or why it says none. */
export type Reading =
  | { readonly config: Config; readonly locate: (pointer: string) => Range | undefined }
  | { readonly mistake: Range & { readonly message: string } };

const FENCE = /^---[ \t]*\r?\n([\s\S]*?)^---[ \t]*\r?\n?/m;

/** The configuration as a text to edit. In Markdown, the system prompt is the text below the front matter. */
export function writeAgent(config: Config, format: Format): string {
  if (format === 'json') return `${JSON.stringify(config, null, 2)}\n`;
  const [rest, prompt] = splitPrompt(config);
  const head = Object.keys(rest).length === 0 ? '' : stringify(rest, { lineWidth: 100 });
  return `---\n${head}---\n\n${prompt.trim()}\n`;
}

/** Reads what a person has written. `name` is the agent's, which front matter may repeat. */
export function readAgent(text: string, format: Format, name: string): Reading {
  return format === 'json' ? readJson(text) : readMarkdown(text, name);
}

function readJson(text: string): Reading {
  try {
    const config: unknown = JSON.parse(text);
    if (typeof config !== 'object' || config === null || Array.isArray(config))
      return wrong(text, 0, 'A configuration is an object.');
    return { config: config as Config, locate: (pointer) => locateInJson(text, pointer) };
  } catch (error) {
    const message = (error as Error).message;
    return wrong(
      text,
      placeOfMistake(text),
      `This is not JSON: ${message.replace(/, "[\s\S]*| in JSON at position.*/, '')}.`,
    );
  }
}

function readMarkdown(text: string, name: string): Reading {
  const found = FENCE.exec(text);
  if (found?.index !== 0)
    return wrong(text, 0, 'The text must begin with front matter between two lines of "---".');
  const yaml = found[1] ?? '';
  const start = found[0].indexOf('\n') + 1;
  const document = parseDocument(yaml, { version: '1.2', prettyErrors: false });
  const error = document.errors[0];
  if (error) return wrong(text, start + error.pos[0], error.message);
  const head: unknown = document.toJS({ maxAliasCount: 0 }) ?? {};
  if (typeof head !== 'object' || Array.isArray(head))
    return wrong(text, start, 'The front matter must have members, such as "description: …".');
  const { name: own, ...members } = head as Config;
  if (own !== undefined && own !== name)
    return wrong(
      text,
      start,
      `The front matter names the agent ${JSON.stringify(own)}, this one is "${name}".`,
    );
  const body = text.slice(found[0].length);
  const config = joinPrompt({ ...members, ...promptTools(members.tools) }, body.trim());
  return {
    config,
    locate: (pointer) => {
      if (pointer === '/instructions' || pointer === '/agent/system')
        return { from: found[0].length, to: text.length };
      const range = locateInYaml(document.contents, pathOf(pointer));
      return range && { from: start + range.from, to: start + range.to };
    },
  };
}

/** Takes the system prompt out of a configuration, of either form. */
function splitPrompt(config: Config): [Config, string] {
  const { agent } = config;
  if (isObject(agent) && typeof agent.system === 'string') {
    const { system, ...rest } = agent;
    return [{ ...config, agent: rest }, system];
  }
  const { instructions = '', ...rest } = config;
  return typeof instructions === 'string' ? [rest, instructions] : [config, ''];
}

function joinPrompt(config: Config, prompt: string): Config {
  if (prompt === '') return config;
  return isObject(config.agent)
    ? { ...config, agent: { ...config.agent, system: prompt } }
    : { ...config, instructions: prompt };
}

/** Writes prompt tools of Markdown files, which have their `prompt` beside the name, as tools of JSON. */
function promptTools(tools: unknown): Config {
  if (!Array.isArray(tools)) return {};
  return {
    tools: tools.map((tool: unknown) => {
      if (!isObject(tool) || tool.prompt === undefined || tool.executionType !== undefined) return tool;
      const { prompt, model, result_schema, parameters, ...rest } = tool;
      return {
        ...rest,
        parameters: schemaOf(parameters),
        executionType: 'prompt',
        execution: {
          prompt,
          ...(model !== undefined && { model }),
          ...(result_schema !== undefined && { result_schema }),
        },
      };
    }),
  };
}

/** A JSON Schema from the short form of front matter, `{type, description, required?}` by parameter. */
function schemaOf(parameters: unknown): unknown {
  if (!isObject(parameters)) return { type: 'object', properties: {} };
  if (typeof parameters.type === 'string') return parameters;
  const required: string[] = [];
  const properties = Object.entries(parameters).map(([name, value]) => {
    if (!isObject(value)) return [name, value];
    const { required: isRequired, ...schema } = value;
    if (isRequired === true) required.push(name);
    return [name, schema];
  });
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required }),
  };
}

function locateInYaml(node: unknown, path: readonly string[]): Range | undefined {
  const [step, ...rest] = path;
  if (step === undefined || !isCollection(node)) return rangeOf(node);
  if (!isMap(node)) return locateInYaml(node.items[Number(step)], rest) ?? rangeOf(node);
  const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step) as Pair | undefined;
  if (!pair) return rangeOf(node.items[0]?.key) ?? rangeOf(node);
  const key = rangeOf(pair.key);
  const value = locateInYaml(pair.value, rest);
  return rest.length === 0 && key ? { from: key.from, to: value?.to ?? key.to } : (value ?? key);
}

function rangeOf(node: unknown): Range | undefined {
  const range = (node as { range?: [number, number, number] | null } | null)?.range;
  return range ? { from: range[0], to: range[1] } : undefined;
}

function pathOf(pointer: string): string[] {
  if (pointer === '') return [];
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function wrong(text: string, at: number, message: string): Reading {
  const from = Math.min(at, text.length);
  const end = text.indexOf('\n', from);
  return { mistake: { from, to: end < 0 ? text.length : end, message } };
}

function isObject(value: unknown): value is Config {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
