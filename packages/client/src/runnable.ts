import { isRecord } from './definition-rules.js';
import { CODES, PluginError, ToolError } from './error.js';
import type { JsonSchema, ToolParameters } from './json-schema.js';
import type { StandardIssue, StandardSchema } from './standard-schema.js';
import { readTimeout } from './timeout.js';
import type { ClientToolDefinition, RunnableTool, SchemaTool, StandardTool, ToolExecutor } from './tool.js';

const DIALECT = 'draft-2020-12';

/** How long the gateway waits for a result by default, and the margin of a longer timeout. */
const DEADLINE_MS = 10 * 60_000;
const SPARE_MS = 60_000;

/**
 * A tool with its executor, with the type of its arguments inferred from `parameters` (JSON Schema) or
 * `input` (zod, valibot, arktype, …). For the `tools` of a plugin; `client.registerTool` accepts the same
 * object directly.
 */
export function defineTool<const P extends ToolParameters>(tool: SchemaTool<P>): RunnableTool;
export function defineTool<S extends StandardSchema>(tool: StandardTool<S>): RunnableTool;
export function defineTool(tool: SchemaTool | StandardTool): RunnableTool {
  if (typeof tool.execute !== 'function') {
    const message = `tool "${tool.name}" has no \`execute\`, which must be a function; a tool that the agent's configuration defines needs no definition here`;
    throw new PluginError(CODES.pluginInvalid, message);
  }
  const timeoutMs = tool.timeout === undefined ? undefined : readTimeout(`tool "${tool.name}"`, tool.timeout);
  const input = 'input' in tool ? tool.input : undefined;
  const definition: ClientToolDefinition = {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters ?? jsonSchemaOf(tool.name, input as StandardSchema, 'input'),
  };
  if (tool.output) {
    definition.outputSchema = isStandard(tool.output)
      ? jsonSchemaOf(tool.name, tool.output, 'output')
      : tool.output;
  }
  if (timeoutMs !== undefined && timeoutMs >= DEADLINE_MS) {
    definition.timeout = timeoutMs + SPARE_MS;
  }
  if (tool.version !== undefined) definition.version = tool.version;
  if (tool.deprecated !== undefined) definition.deprecated = tool.deprecated;
  const execute = tool.execute as ToolExecutor;
  return {
    definition,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    execute: input ? checked(tool.name, input, execute) : execute,
  };
}

/** The executor, called only with valid arguments. */
function checked(name: string, input: StandardSchema, execute: ToolExecutor): ToolExecutor {
  return async (args, context) => {
    const outcome = await input['~standard'].validate(args);
    if (outcome.issues) {
      const problems = outcome.issues.map(sentence).join('; ');
      throw new ToolError(
        CODES.toolArguments,
        `the arguments of ${name} do not match the schema: ${problems}`,
      );
    }
    return execute(outcome.value as Record<string, unknown>, context);
  };
}

function sentence({ message, path = [] }: StandardIssue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return place ? `${place}: ${message}` : message;
}

/** The JSON Schema that a schema library generates, without `$schema`: the gateway has one dialect. */
function jsonSchemaOf(tool: string, schema: StandardSchema, side: 'input' | 'output'): JsonSchema {
  const convert = schema['~standard'].jsonSchema;
  if (!convert) {
    const way = side === 'input' ? 'give `parameters` beside `input`' : 'give `output` as JSON Schema';
    const message = `${schema['~standard'].vendor} does not generate the JSON Schema of ${tool}'s ${side}, ${way}, or wrap it (valibot: toStandardJsonSchema)`;
    throw new PluginError(CODES.pluginInvalid, message);
  }
  const { $schema: _, ...rest } = convert[side]({ target: DIALECT });
  return rest;
}

/** Whether a value is a Standard Schema; arktype's are functions. */
export function isStandard(value: unknown): value is StandardSchema {
  return (isRecord(value) || typeof value === 'function') && '~standard' in value;
}
