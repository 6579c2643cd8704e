import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the gateway asked the model. */
export interface ModelRequest {
  messages: Array<{ role: string; content?: unknown; tool_calls?: unknown[]; tool_call_id?: string }>;
  tools?: Array<{ function: { name: string; description?: string; parameters?: unknown } }>;
}

/** What the model says: words, calls, or both. A lone string is `{ text }`. */
export interface ModelReply {
  text?: string;
  reasoning?: string;
  calls?: Array<{ name: string; args?: unknown }>;
  /** Says the first word, then nothing until this resolves. */
  hold?: Promise<unknown>;
  /** Refuses with this status instead. */
  status?: number;
  /** After its words it reports an error with this code, in the middle of the stream. */
  failsWith?: string;
}

/** Replies in order (the last one again and again), or a function of what was asked. */
export type Script =
  | Array<string | ModelReply>
  | ((request: ModelRequest, count: number) => string | ModelReply | Promise<string | ModelReply>);

/** An OpenAI-compatible server on loopback. */
export interface Model {
  /** What a gateway takes as the model's base URL. */
  baseUrl: string;
  /** Everything it was asked, in order. */
  requests: ModelRequest[];
  stop(): Promise<void>;
}

/** Starts a model that follows a script. */
export async function startModel(script: Script): Promise<Model> {
  const requests: ModelRequest[] = [];
  const next = async (request: ModelRequest): Promise<ModelReply> => {
    const count = requests.push(request) - 1;
    const reply =
      typeof script === 'function' ? await script(request, count) : (script[count] ?? script.at(-1) ?? '');
    return typeof reply === 'string' ? { text: reply } : reply;
  };
  const server = createServer((request, response) => {
    answer(request, response, next).catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  next: (request: ModelRequest) => Promise<ModelReply>,
): Promise<void> {
  let body = '';
  for await (const piece of request) body += piece;
  const reply = await next(JSON.parse(body) as ModelRequest);
  if (reply.status !== undefined) {
    response.writeHead(reply.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: 'as the script says' } }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta: unknown, finish: string | null = null, usage?: unknown): void => {
    const chunk = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      model: 'scripted',
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...(usage ? { usage } : {}),
    };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  if (reply.reasoning) send({ role: 'assistant', reasoning_content: reply.reasoning });
  const [first = '', ...rest] = (reply.text ?? '').split(/(?<= )/);
  if (first) send({ role: 'assistant', content: first });
  await reply.hold;
  for (const word of rest) send({ content: word });
  if (reply.failsWith !== undefined) {
    const error = { message: 'as the script says', code: reply.failsWith };
    response.end(`data: ${JSON.stringify({ error })}\n\n`);
    return;
  }
  for (const [index, { name, args }] of (reply.calls ?? []).entries()) {
    const id = `call_${index}_${Math.random().toString(36).slice(2)}`;
    send({
      tool_calls: [
        { index, id, type: 'function', function: { name, arguments: JSON.stringify(args ?? {}) } },
      ],
    });
  }
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  send({}, reply.calls?.length ? 'tool_calls' : 'stop', usage);
  response.end('data: [DONE]\n\n');
}
