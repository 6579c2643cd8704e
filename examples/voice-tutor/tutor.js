// A tutor proposes a tool aloud, the pupil says yes or no, the tool runs. The console stands in for the loudspeaker.
import { readDecision, ToolgateClient } from '@toolgate/client';
import { myPlugin } from './my-plugin.js';

const client = new ToolgateClient({
  url: process.env.TOOLGATE_URL ?? 'http://127.0.0.1:8787',
  key: process.env.TOOLGATE_SECRET_KEY,
});
const [said = 'crea un foglio', topic = 'la gravità', answer = 'sì'] = process.argv.slice(2);
const speak = (text) => console.log(`🔊 ${text}`);

// The registry keeps the definition; the agent has the tool by its id, and was granted what it needs.
await client.registry.replace(myPlugin);
await client.agents.put('tutor', {
  instructions: 'Sei un tutor.',
  tools: [myPlugin.id],
  grants: myPlugin.permissions,
});
const { id: spaceId } = await client.spaces.create({ title: 'Lezione', agent: 'tutor' });
const server = client.tools.serve(spaceId, { tools: { [myPlugin.id]: myPlugin.handler } });
await server.ready();

// What the pupil says finds the tool, and the match says why.
const [match] = await client.tools.match(said, { language: 'it', agent: 'tutor', context: { topic } });
if (match) {
  console.log(`"${said}" → ${match.name}, by the trigger "${match.trigger}"`);
  await teach(match.name);
} else {
  console.log(`no tool for "${said}"`);
}
await client.close();

async function teach(tool) {
  const { runId } = await client.tools.call(tool, { agent: 'tutor', spaceId, arguments: { topic } });
  for await (const event of client.runs.subscribe(runId)) {
    switch (event.type) {
      case 'tool-approval-request':
        speak(event.voice?.text ?? `${event.toolName}?`);
        console.log(`🎤 ${answer}`);
        await client.approvals.decide(event.approvalId, {
          approved: readDecision(answer, { language: 'it' }) === true,
        });
        break;
      case 'tool-output-available':
        if (event.voice) speak(event.voice.text);
        break;
      case 'tool-output-denied':
        speak('Va bene, niente foglio.');
        break;
      default:
    }
  }
}
