import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Model } from '@toolgate/test-support';
import * as ai6 from 'ai-v6';
import * as ai7 from 'ai-v7';
import { createOpenAICompatible as provider6 } from 'provider-v6';
import { createOpenAICompatible as provider7 } from 'provider-v7';
import type { Dialect, Message } from './sdk.ts';

/** Steps in which the SDK's own loop runs tools of the server; more than any scenario has. */
const STEPS_MAX = 5;

/** A tool of the reference server. One without `execute` is the client's. */
export interface ReferenceTool {
  name: string;
  execute?: (input: unknown) => unknown;
  needsApproval?: boolean;
}

/** An application's own chat route, as the AI SDK's documentation has it: the SDK's `streamText` answers. */
export interface Reference {
  /** Address of the server; the route is `/api/chat`. */
  url: string;
  /** Tools of the chats from now on. */
  tools: ReferenceTool[];
  stop(): Promise<void>;
}

/** What a major's `streamText` side has in common with the other's. */
interface ServerSdk {
  streamText(options: object): { toUIMessageStream(options: object): ReadableStream<object> };
  convertToModelMessages(messages: Message[], options: object): Promise<unknown[]>;
  jsonSchema(schema: object): unknown;
  generateId(): string;
  stepCountIs(count: number): unknown;
  provider(options: { name: string; baseURL: string }): (model: string) => unknown;
}

// The majors' types differ in what the tests never touch.
const serverSdks: Partial<Record<Dialect, ServerSdk>> = {
  v6: { ...ai6, provider: provider6 } as unknown as ServerSdk,
  v7: { ...ai7, provider: provider7 } as unknown as ServerSdk,
};

/** Starts a chat route of one major that asks this model. */
export async function startReference(dialect: Dialect, model: Pick<Model, 'baseUrl'>): Promise<Reference> {
  const sdk = serverSdks[dialect];
  if (!sdk) throw new Error(`no reference for ${dialect}`);
  const reference: Reference = { url: '', tools: [], stop: async () => {} };
  const respond = async (messages: Message[]): Promise<Response> => {
    const tools = Object.fromEntries(reference.tools.map(({ name, ...tool }) => [name, asTool(sdk, tool)]));
    const result = sdk.streamText({
      model: sdk.provider({ name: 'scripted', baseURL: model.baseUrl })('scripted'),
      messages: await sdk.convertToModelMessages(messages, { tools }),
      tools,
      stopWhen: sdk.stepCountIs(STEPS_MAX),
      maxRetries: 0,
      onError: () => {},
    });
    const stream = result.toUIMessageStream({
      originalMessages: messages,
      generateMessageId: sdk.generateId,
      onError: (error: unknown) => (error instanceof Error ? error.message : String(error)),
    });
    const events = stream.pipeThrough(
      new TransformStream<object, string>({
        transform: (chunk, out) => out.enqueue(`data: ${JSON.stringify(chunk)}\n\n`),
        flush: (out) => out.enqueue('data: [DONE]\n\n'),
      }),
    );
    return new Response(events.pipeThrough(new TextEncoderStream()));
  };
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const piece of request) body += piece;
      const answer = await respond((JSON.parse(body) as { messages: Message[] }).messages);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for await (const piece of answer.body ?? []) response.write(piece);
      response.end();
    })().catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  reference.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  reference.stop = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return reference;
}

function asTool(sdk: ServerSdk, tool: Omit<ReferenceTool, 'name'>): object {
  const inputSchema = sdk.jsonSchema({ type: 'object', properties: { city: { type: 'string' } } });
  return { description: 'A tool of the reference.', inputSchema, ...tool };
}
