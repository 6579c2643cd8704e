import { chatRequest, messagesOf } from './chat-request.js';
import type { ChatOptions, ChatResult, Chunk } from './chunk.js';
import { CODES, ConflictError, ProtocolError, ValidationError } from './error.js';
import { freshKey } from './fresh-key.js';
import type { ClientToolDefinition } from './tool.js';
import { type ChatHost, type Opened, Turn } from './turn.js';
import type { StartRun } from './wire.js';
import { wireDefinition } from './wire-definition.js';

/** Most tools that the gateway takes of an executor. */
const EXECUTOR_TOOLS_MAX = 256;

/** Starts a run, yields its chunks, and executes the calls of this client's tools. */
export async function* chat(host: ChatHost, options: ChatOptions): AsyncGenerator<Chunk, ChatResult, void> {
  const messages = messagesOf(options);
  await host.ready();
  const agent = options.agent ?? host.agent;
  const space = options.space ?? host.conversations.find(messages, agent);
  const tools = chosen(host, options);
  const request = chatRequest(
    options,
    messages,
    { agent, space },
    tools.map(wireDefinition),
    executorOf(host, options, tools),
  );
  const prepared = await host.registry.beforeRequest(request);
  const opened = await (options.space === undefined ? startOrGoOn : start)(host, prepared, options.signal);
  host.conversations.remember(opened.spaceId, messages, agent);
  const turn = new Turn(host, options, opened);
  try {
    return yield* turn.chunks();
  } finally {
    turn.stop();
  }
}

/** The tools that the model is offered. Throws for a name that is none of them. */
function chosen(host: ChatHost, { only }: ChatOptions): ClientToolDefinition[] {
  const all = host.registry.definitions();
  const unknown = only?.find((name) => !all.some((tool) => tool.name === name));
  if (unknown !== undefined) {
    const problem = `\`only\` names "${unknown}", which is not a tool of this client`;
    throw new ValidationError(CODES.validation, problem, {
      errors: [{ pointer: '/only', message: problem }],
    });
  }
  return only ? all.filter(({ name }) => only.includes(name)) : all;
}

/**
 * This client, as the executor of its tools; of any tool if a callback may execute it. Calls of tools beyond the limit are
 * not reserved for it, and it claims them like any other client.
 */
function executorOf(
  { registry, holder }: ChatHost,
  { onToolCall }: ChatOptions,
  tools: ClientToolDefinition[],
): StartRun['executor'] {
  if (onToolCall || registry.handlesAny()) return { holder };
  const executed = tools.map(({ name }) => name).filter((name) => registry.hasExecutor(name));
  return executed.length > 0 ? { holder, tools: executed.slice(0, EXECUTOR_TOOLS_MAX) } : undefined;
}

/**
 * Starts a run in the space that this client found for the messages. Only agents with `history: client` take the earlier
 * messages then: the others go by the space, which has them.
 */
async function startOrGoOn(
  host: ChatHost,
  request: StartRun,
  signal: AbortSignal | undefined,
): Promise<Opened> {
  try {
    return await start(host, request, signal);
  } catch (error) {
    if (!(error instanceof ConflictError) || error.code !== CODES.historyNotTaken) throw error;
    const { history: _, ...rest } = request;
    return start(host, rest, signal);
  }
}

async function start(host: ChatHost, request: StartRun, signal: AbortSignal | undefined): Promise<Opened> {
  const response = await host.connection.send('/v1/runs', {
    method: 'POST',
    // Results are posted on separate requests, so that a slow tool does not block the stream.
    query: { until: 'end' },
    body: request,
    headers: { accept: 'text/event-stream', 'idempotency-key': freshKey() },
    safe: true,
    ...(signal ? { signal } : {}),
  });
  const runId = response.headers.get('toolgate-run-id');
  const spaceId = response.headers.get('toolgate-space-id');
  if (!runId || !spaceId) throw new ProtocolError(CODES.protocol, 'the response of the gateway names no run');
  return { response, runId, spaceId };
}
