import { isRecord } from './definition-rules.js';
import { CODES, ToolError } from './error.js';
import type { ToolCall, ToolCallLike } from './tool.js';

/**
 * Normalizes a call, whatever member names it came with. Throws a `ToolError` if its arguments are not a JSON
 * object.
 */
export function readToolCall(call: ToolCallLike): ToolCall {
  const toolName = call.givenName ?? call.toolName ?? call.name ?? call.function?.name ?? '';
  const { runId, spaceId, deadline } = call;
  return {
    toolCallId: call.toolCallId ?? call.callId ?? call.id ?? '',
    toolName,
    args: readArguments(toolName, call.args ?? call.input ?? call.arguments ?? call.function?.arguments),
    ...(runId === undefined ? {} : { runId }),
    ...(spaceId === undefined ? {} : { spaceId }),
    ...(deadline === undefined ? {} : { deadline }),
  };
}

/** The name under which whoever executes a call knows its tool. */
export function nameOf(event: { toolName: string; givenName?: string }): string {
  return event.givenName ?? event.toolName;
}

function readArguments(toolName: string, value: unknown): Record<string, unknown> {
  let read = value;
  if (typeof value === 'string') {
    try {
      read = value.trim() === '' ? {} : JSON.parse(value);
    } catch (cause) {
      throw new ToolError(CODES.toolArguments, `the arguments of ${toolName} are not JSON`, { cause });
    }
  }
  read ??= {};
  if (isRecord(read)) return read;
  throw new ToolError(CODES.toolArguments, `the arguments of ${toolName} are not an object`);
}
