// A tutor proposes a tool aloud, the pupil says yes or no, the tool runs. The console stands in for the loudspeaker.
import { createInterface } from 'node:readline';
import { readDecision, ToolgateClient } from '@toolgate/client';
import { myPlugin } from './my-plugin.js';

/** How long the pupil may take to type an answer. */
const ANSWER_MS_MAX = 60_000;

const [said = 'crea un foglio', topic = 'la gravità', answer = 'sì'] = process.argv.slice(2);
const speak = (text) => console.log(`🔊 ${text}`);

if (topic.trim() === '') {
  console.error('the topic is empty, expected one such as "la gravità"');
  process.exitCode = 1;
} else {
  const client = new ToolgateClient({
    url: process.env.TOOLGATE_URL ?? 'http://127.0.0.1:8787',
    key: process.env.TOOLGATE_SECRET_KEY,
  });
  await lesson(client);
  await client.close();
}

async function lesson(client) {
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
    await teach(client, spaceId, match.name);
  } else {
    console.log(`no tool for "${said}"`);
  }
}

async function teach(client, spaceId, tool) {
  const { runId } = await client.tools.call(tool, { agent: 'tutor', spaceId, arguments: { topic } });
  for await (const event of client.runs.subscribe(runId)) {
    switch (event.type) {
      case 'tool-approval-request': {
        speak(event.voice?.text ?? `${event.toolName}?`);
        const approved = await decision();
        // Silence is not a no: the call is withdrawn, and nobody has rejected it.
        if (approved === undefined) await client.runs.cancel(runId);
        else await client.approvals.decide(event.approvalId, { approved });
        break;
      }
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

/** Whether the pupil says yes or no, asked again after anything else; `undefined` if nothing more is said. */
async function decision() {
  for await (const words of answers()) {
    console.log(`🎤 ${words}`);
    const approved = readDecision(words, { language: 'it' });
    if (approved !== undefined) return approved;
    speak('Dimmi sì o no.');
  }
  speak('Non sento niente, lascio stare.');
  return undefined;
}

/** What the pupil says: the answer of the command line, and then lines that are typed. */
async function* answers() {
  yield answer;
  const signal = AbortSignal.timeout(ANSWER_MS_MAX);
  yield* createInterface({ input: process.stdin, signal });
}
