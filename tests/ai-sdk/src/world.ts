import {
  type Gateway,
  type GatewayOptions,
  type ModelReply,
  type ModelRequest,
  startGateway,
  startModel,
} from '@toolgate/test-support';

/** A gateway whose model says what the test at hand wants. */
export interface World {
  gateway: Gateway;
  /** Base URL of the model. */
  modelUrl: string;
  /** What the model was asked since the script was set. */
  asked: ModelRequest[];
  /** The model's next replies; the last one again and again. */
  script(...replies: Array<string | ModelReply>): void;
  /** Makes an agent and gives its name. */
  agent(config: object): Promise<string>;
  /** The gateway's API, as a backend or as whoever the headers name. */
  call<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T>;
  stop(): Promise<void>;
}

export async function startWorld(options: GatewayOptions = {}): Promise<World> {
  let replies: Array<string | ModelReply> = [];
  const asked: ModelRequest[] = [];
  const model = await startModel((request) => {
    asked.push(request);
    return (replies.length > 1 ? replies.shift() : replies[0]) ?? 'nothing more';
  });
  const gateway = await startGateway({ ...options, model });
  let agents = 0;
  const world: World = {
    gateway,
    modelUrl: model.baseUrl,
    asked,
    script: (...next) => {
      asked.length = 0;
      replies = next;
    },
    agent: async (config) => {
      agents += 1;
      const name = `agent${agents}`;
      await world.call('PUT', `/v1/agents/${name}`, { access: 'public', ...config });
      return name;
    },
    call: async (method, path, body, headers) => {
      const response = await fetch(gateway.url + path, {
        method,
        headers: { 'content-type': 'application/json', ...(headers ?? asBackend(gateway)) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text ? JSON.parse(text) : undefined;
    },
    stop: async () => {
      await gateway.stop();
      await model.stop();
    },
  };
  return world;
}

export function asBackend(gateway: Gateway): Record<string, string> {
  return { authorization: `Bearer ${gateway.secretKey}` };
}

export function asUser(gateway: Gateway, sub: string): Record<string, string> {
  return { 'x-public-key': gateway.publicKey, authorization: `Bearer ${gateway.token(sub)}` };
}

/** A tool that the client runs, as it stands in a request. */
export function clientTool(name: string): object {
  return {
    name,
    description: `Runs ${name} in the browser.`,
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  };
}

/** A tool that the gateway runs. */
export function serverTool(name: string, output: unknown, more: object = {}): object {
  return {
    name,
    description: `Runs ${name} on the gateway.`,
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    executionType: 'basic',
    execution: { static: output },
    ...more,
  };
}
