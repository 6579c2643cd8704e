import { type Gateway, type Model, type Script, startGateway, startModel } from '@toolgate/test-support';
import { afterEach } from 'vitest';
import { type Chunk, ToolgateClient, type ToolgateClientOptions } from '../src/index.js';

const cleanup: Array<() => unknown> = [];
afterEach(async () => {
  for (const clean of cleanup.splice(0).reverse()) await clean();
});

/** Undoes something when the test has ended; the last thing first. */
export function afterwards(clean: () => unknown): void {
  cleanup.push(clean);
}

export interface World {
  model: Model;
  gateway: Gateway;
  client: ToolgateClient;
  /** Another client of the same gateway. */
  another(options?: Partial<ToolgateClientOptions>): ToolgateClient;
}

/** A gateway whose model follows a script, with this configuration file, and a client with its secret key. */
export async function world(
  script: Script,
  options: Partial<ToolgateClientOptions> = {},
  config?: string,
): Promise<World> {
  const model = await startModel(script);
  afterwards(model.stop);
  const gateway = await startGateway({ model, ...(config === undefined ? {} : { config }) });
  afterwards(gateway.stop);
  const another = (more: Partial<ToolgateClientOptions> = {}): ToolgateClient => {
    const client = new ToolgateClient({ url: gateway.url, key: gateway.secretKey, ...more });
    afterwards(() => client.close());
    return client;
  };
  return { model, gateway, another, client: another(options) };
}

export async function collect(stream: AsyncIterable<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** The values of the chunks of one type. */
export function valuesOf<T extends Chunk['type']>(
  chunks: Chunk[],
  type: T,
): Array<Extract<Chunk, { type: T }>['value']> {
  return chunks.filter((chunk) => chunk.type === type).map(({ value }) => value) as never;
}

/** A promise and what settles it. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** A tool without arguments, for scripts that call it. */
export const bare = (name: string) => ({
  name,
  description: `The tool ${name}.`,
  parameters: { type: 'object', properties: {} } as const,
});
