import { isRecord } from './definition-rules.js';
import { CODES, PluginError, ToolError } from './error.js';
import type { JsonSchema, ToolParameters } from './json-schema.js';
import type { StandardIssue, StandardSchema } from './standard-schema.js';
import type { ClientToolDefinition, RunnableTool, SchemaTool, StandardTool, ToolExecutor } from './tool.js';

const DIALECT = 'draft-2020-12';

/** How long the gateway waits for a result unless it is told otherwise, and what a longer wait has to spare. */
const DEADLINE_MS = 10 * 60_000;
const SPARE_SECONDS = 60;

/**
 * A tool with its executor, the type of its arguments inferred from `parameters` (JSON Schema) or `input` (zod,
 * valibot, arktype, …). For the `tools` of a plugin; `client.registerTool` takes the same object as it is.
 */
export function defineTool<const P extends ToolParameters>(tool: SchemaTool<P>): RunnableTool;
export function defineTool<S extends StandardSchema>(tool: StandardTool<S>): RunnableTool;
export function defineTool(tool: SchemaTool | StandardTool): RunnableTool {
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
  if (tool.timeout !== undefined && tool.timeout >= DEADLINE_MS) {
    definition.timeout = Math.ceil(tool.timeout / 1000) + SPARE_SECONDS;
  }
  const execute = tool.execute as ToolExecutor;
  return {
    definition,
    ...(tool.timeout === undefined ? {} : { timeoutMs: tool.timeout }),
    execute: input ? checked(tool.name, input, execute) : execute,
  };
}

/** The executor, given only arguments that fit. */
function checked(name: string, input: StandardSchema, execute: ToolExecutor): ToolExecutor {
  return async (args, context) => {
    const outcome = await input['~standard'].validate(args);
    if (outcome.issues) {
      const words = outcome.issues.map(sentence).join('; ');
      throw new ToolError(CODES.toolArguments, `the arguments of ${name} do not fit: ${words}`);
    }
    return execute(outcome.value as Record<string, unknown>, context);
  };
}

function sentence({ message, path = [] }: StandardIssue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return place ? `${place}: ${message}` : message;
}

/** What a schema library says of itself, without the dialect, which is the gateway's own. */
function jsonSchemaOf(tool: string, schema: StandardSchema, side: 'input' | 'output'): JsonSchema {
  const convert = schema['~standard'].jsonSchema;
  if (!convert) {
    const way = side === 'input' ? 'give `parameters` beside `input`' : 'give `output` as JSON Schema';
    const words = `${schema['~standard'].vendor} does not say the JSON Schema of ${tool}'s ${side}; ${way}, or wrap it (valibot: toStandardJsonSchema)`;
    throw new PluginError(CODES.pluginInvalid, words);
  }
  const { $schema: _, ...rest } = convert[side]({ target: DIALECT });
  return rest;
}

/** Whether a value is a Standard Schema; arktype's are functions. */
export function isStandard(value: unknown): value is StandardSchema {
  return (isRecord(value) || typeof value === 'function') && '~standard' in value;
}
