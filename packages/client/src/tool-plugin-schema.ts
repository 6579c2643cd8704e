import { isRecord, NAME_PATTERN } from './definition-rules.js';
import { CODES, ValidationError } from './error.js';
import type { RegisteredTool } from './tool-registry.js';
import type { Fault } from './wire.js';

/** A tool that can be registered, or all problems of it. */
export type ToolPluginCheck =
  | { success: true; data: RegisteredTool }
  | { success: false; error: ValidationError };

/** Checks a tool before it is registered. The gateway decides; this reports the same problems earlier. */
export const ToolPluginSchema: {
  /** The tool, if it can be registered. Throws a `ValidationError` that lists all problems. */
  parse(tool: unknown): RegisteredTool;
  /** The same without throwing. */
  safeParse(tool: unknown): ToolPluginCheck;
} = {
  parse(tool) {
    const checked = ToolPluginSchema.safeParse(tool);
    if (checked.success) return checked.data;
    throw checked.error;
  },
  safeParse(tool) {
    const errors = faultsOf(tool);
    if (errors.length === 0) return { success: true, data: tool as RegisteredTool };
    const problems = errors.map(({ pointer, message }) => `${pointer || '/'}: ${message}`).join('; ');
    const error = new ValidationError(CODES.validation, `the tool is not valid: ${problems}`, { errors });
    return { success: false, error };
  },
};

type Rule = (value: unknown) => string | undefined;

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const expected =
  (what: string, holds: (value: unknown) => boolean): Rule =>
  (value) =>
    holds(value) ? undefined : `expected ${what}`;
const texts = expected('a list of texts', (value) => Array.isArray(value) && value.every(isText));
const text = expected('a text that is not empty', isText);
const voice: Rule = (value) => {
  if (isText(value)) return undefined;
  if (!isRecord(value) || !isText(value.template))
    return 'expected a text or {template, requiresContext?, fallback?}';
  if (value.requiresContext !== undefined && texts(value.requiresContext))
    return 'requiresContext is no list of texts';
  return value.fallback !== undefined && text(value.fallback) ? 'fallback is no text' : undefined;
};

/** What each member is, if it is there. Other members are the gateway's to judge. */
const RULES: Readonly<Record<string, Rule>> = {
  id: expected(
    'a name of up to 64 letters, digits, _ and -, that begins with a letter or _',
    (value) => typeof value === 'string' && NAME_PATTERN.test(value),
  ),
  name: text,
  description: text,
  category: text,
  schema: expected(
    'a Standard Schema or JSON Schema',
    (value) => isRecord(value) || typeof value === 'function',
  ),
  handler: expected('a function', (value) => typeof value === 'function'),
  voicePrompt: voice,
  voiceFeedback: voice,
  voiceEnabled: expected('true or false', (value) => typeof value === 'boolean'),
  triggers: texts,
  prerequisites: expected(
    'a list of names or {tool, scope?, within?}',
    (value) =>
      Array.isArray(value) && value.every((one) => isText(one) || (isRecord(one) && isText(one.tool))),
  ),
  permissions: texts,
};

function faultsOf(tool: unknown): Fault[] {
  if (!isRecord(tool)) return [{ pointer: '', message: 'expected an object' }];
  return Object.entries(RULES).flatMap(([name, rule]) => {
    if (tool[name] === undefined && name !== 'id') return [];
    const message = rule(tool[name]);
    return message === undefined ? [] : [{ pointer: `/${name}`, message }];
  });
}
