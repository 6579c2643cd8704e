import { type Gateway, startGateway } from '@toolgate/test-support';

const tool = (name: string, execution: unknown, more: object = {}) => ({
  name,
  description: `The tool ${name}.`,
  parameters: { type: 'object' },
  executionType: 'basic',
  execution,
  ...more,
});

/** A gateway whose `default` agent has a tool of each kind. */
export async function startWorld(env: Record<string, string> = {}): Promise<Gateway> {
  const gateway = await startGateway({ env });
  const outputSchema = { type: 'object' };
  await rest(gateway, 'PUT', '/v1/agents/default', {
    instructions: 'Be brief.',
    model: { provider: 'demo' },
    tools: [
      tool('echo', { mode: 'pass-through' }, { outputSchema }),
      tool('risky', { mode: 'pass-through' }, { approval: 'always' }),
      tool('show_page', null, { outputSchema }),
    ],
  });
  return gateway;
}

/** One request to the gateway's REST API, as its backend. */
export async function rest(
  gateway: Gateway,
  method: string,
  path: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${gateway.secretKey}`, 'content-type': 'application/json' };
  const response = await fetch(gateway.url + path, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}
