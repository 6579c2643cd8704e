// A worker for a small greenhouse: it serves tools to an agent, from wherever it runs.
// Start as many as you like with the same SPACE: each call is executed by one of them.
import { ToolgateClient } from '@toolgate/client';

const client = new ToolgateClient({
  url: process.env.TOOLGATE_URL ?? 'http://127.0.0.1:8787',
  key: process.env.TOOLGATE_SECRET_KEY,
});

const agent = {
  instructions: 'You look after a greenhouse. Use the tools; never guess.',
  tools: [
    {
      name: 'read_temperature',
      description: 'Reads the temperature at a place in the greenhouse, in °C.',
      parameters: { type: 'object', properties: { place: { type: 'string' } } },
    },
    {
      name: 'open_window',
      description: 'Opens the roof window. Takes a few seconds.',
      parameters: { type: 'object', properties: { percent: { type: 'integer', minimum: 0, maximum: 100 } } },
    },
  ],
};

/** What the machine at hand can do. A real one talks to hardware here. */
const tools = {
  read_temperature: async ({ place = 'door' }) => ({ place, celsius: 21.5 }),
  open_window: {
    timeout: 30_000,
    execute: async ({ percent = 50 }, { progress, signal }) => {
      for (let opened = 10; opened <= percent && !signal.aborted; opened += 10) await progress({ opened });
      return { opened: percent };
    },
  },
};

await client.agents.put('greenhouse', agent);
const space =
  process.env.SPACE ?? (await client.spaces.create({ title: 'Greenhouse', agent: 'greenhouse' })).id;
const server = client.tools.serve(space, { tools });
await server.ready();
console.log(`serving ${Object.keys(tools).join(', ')} in ${space}`);
client.on('tool_end', ({ toolName, result }) => console.log(`${toolName} gave ${JSON.stringify(result)}`));

const question = process.argv.slice(2).join(' ');
if (question) {
  const { text } = await client.chat({ space, message: question, waitForTools: true });
  console.log(text);
  await client.close();
} else {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close());
  await server.done;
}
