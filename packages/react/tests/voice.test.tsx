// @vitest-environment happy-dom
// @vitest-environment-options {"settings": {"fetch": {"disableSameOriginPolicy": true}}}

import { cleanup, configure, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { ToolgateClient } from '@toolgate/client';
import {
  type SpeechPorts,
  ToolgateChatProvider,
  type ToolVoiceOptions,
  useApprovals,
  useToolVoice,
} from '@toolgate/react';
import { StrictMode } from 'react';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startWorld, type World } from './world.js';

configure({ asyncUtilTimeout: 20_000 });

const SHEET = {
  name: 'my_tool',
  description: 'Makes a sheet.',
  parameters: { type: 'object', properties: { amount: { type: 'number' } } },
  executionType: 'basic',
  execution: { mode: 'pass-through' },
  approval: 'always',
  triggers: ['crea', 'foglio'],
  voicePrompt: 'Creare {amount} fogli?',
  voiceFeedback: '{amount} fogli creati',
};

/** Tools that run without a question and are confirmed aloud. */
const QUICK = Array.from({ length: 10 }, (_, number) => ({
  ...{ name: `quick_${number}`, description: 'Runs at once.', parameters: SHEET.parameters },
  ...{ executionType: 'basic', execution: { static: 'done' }, approval: 'never' },
  voiceFeedback: `Fatto ${number}`,
}));

let world: World;
beforeAll(async () => {
  world = await startWorld();
  const model = { provider: 'openai', name: 'scripted', baseUrl: world.model.baseUrl, apiKey: 'none' };
  await world.client.agents.put('tutor', { tools: [SHEET, ...QUICK], model });
}, 60_000);
afterAll(() => world?.stop());
afterEach(cleanup);

function Desk({ spaceId, options }: { spaceId: string; options: ToolVoiceOptions }) {
  const voice = useToolVoice(spaceId, options);
  const { approvals, approve } = useApprovals(spaceId);
  return (
    <>
      <p>
        {voice.isListening ? 'listening' : 'silent'} {voice.text}{' '}
        {voice.matches.map(({ name, trigger }) => `${name} by ${trigger}`).join()} {voice.error?.message}
        {voice.decision && (voice.decision.approved ? ' said yes' : ' said no')}
      </p>
      {voice.proposal && <p>asked: {voice.proposal.voice}</p>}
      <input aria-label="Words" onChange={({ target }) => void voice.answer(target.value).catch(() => {})} />
      <button type="button" disabled={!voice.canListen} onClick={voice.listen}>
        Listen
      </button>
      <button type="button" onClick={() => void voice.find('vorrei un foglio')}>
        Find
      </button>
      {approvals.map(({ id }) => (
        <button key={id} type="button" onClick={() => void approve(id)}>
          Yes
        </button>
      ))}
    </>
  );
}

/** A microphone that hears what the test says. */
function microphone() {
  let listener: Parameters<NonNullable<SpeechPorts['listen']>>[0] | undefined;
  return {
    hear: (text: string) => {
      listener?.onText(text);
      listener?.onEnd();
    },
    listen: (given: NonNullable<typeof listener>) => {
      listener = given;
      return () => given.onEnd();
    },
  };
}

/** The decisions on a space's calls, once there are so many. */
async function decisionsOf(spaceId: string, count: number): Promise<boolean[]> {
  const decisions: boolean[] = [];
  const stream = world.client.spaces.subscribe(spaceId);
  for await (const event of stream) {
    if (event.type === 'tool-approval-response') decisions.push(event.approved);
    if (decisions.length === count) break;
  }
  stream.close();
  return decisions;
}

function show(spaceId: string, options: ToolVoiceOptions, client = world.client) {
  return render(
    <StrictMode>
      <ToolgateChatProvider client={client} agent="tutor">
        <Desk spaceId={spaceId} options={options} />
      </ToolgateChatProvider>
    </StrictMode>,
  );
}

test('proposals and completions of a space are said aloud, each once', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  const said: string[] = [];
  const speech: SpeechPorts = { speak: (text, language) => said.push(`${language}: ${text}`) };
  show(id, { speech, language: 'it-IT' });
  await world.client.spaces.post(id, 'my_tool');
  fireEvent.click(await screen.findByRole('button', { name: 'Yes' }));
  await waitFor(() => expect(said).toEqual(['it-IT: Creare 5 fogli?', 'it-IT: 5 fogli creati']));
  cleanup();
  // Who opens the page later hears nothing of what is over.
  const later: string[] = [];
  show(id, { speech: { speak: (text) => later.push(text) } });
  fireEvent.click(screen.getByRole('button', { name: 'Find' }));
  await screen.findByText(/my_tool by foglio/);
  expect(later).toEqual([]);
});

test('calls that run without a question are confirmed aloud, each once, and not after a reload', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  /** A page that is loaded anew, once it knows where the past of the space ends. */
  const page = async () => {
    const said: string[] = [];
    await new Promise<void>((resolve) => {
      const watched: typeof fetch = async (url, init) => {
        const answer = await fetch(url, init);
        const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream';
        if (!isStream && String(url).includes(`${id}/events`)) resolve();
        return answer;
      };
      const { url, secretKey: key } = world.gateway;
      show(
        id,
        { speech: { speak: (text) => said.push(text) } },
        new ToolgateClient({ url, key, fetch: watched }),
      );
    });
    return said;
  };
  const run = (tools: typeof QUICK) => world.client.spaces.post(id, tools.map(({ name }) => name).join(' '));
  const texts = QUICK.map(({ voiceFeedback }) => voiceFeedback);
  const said = await page();
  await run(QUICK);
  await waitFor(() => expect(said.toSorted()).toEqual(texts));
  cleanup();
  const later = await page();
  await run(QUICK.slice(3, 4));
  await waitFor(() => expect(later).toEqual(['Fatto 3']));
});

test('typed words find the tool where there is no microphone', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  show(id, { speech: {}, agent: 'tutor' });
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Listen' }).disabled).toBe(true);
  fireEvent.click(screen.getByRole('button', { name: 'Find' }));
  await screen.findByText(/silent vorrei un foglio my_tool by foglio/);
});

test('what is heard finds the tool, and what goes wrong is told', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  let listener: Parameters<NonNullable<SpeechPorts['listen']>>[0] | undefined;
  const speech: SpeechPorts = {
    listen: (given) => {
      listener = given;
      return () => given.onEnd();
    },
  };
  show(id, { speech, language: 'it' });
  fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
  await screen.findByText(/^listening/);
  listener?.onText('crea qualcosa');
  listener?.onEnd();
  await screen.findByText(/silent crea qualcosa my_tool by crea/);
  fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
  listener?.onEnd(new Error('not-allowed'));
  await screen.findByText(/not-allowed/);
});

test('a spoken yes runs what was proposed aloud, and its feedback is said', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  const said: string[] = [];
  const { hear, listen } = microphone();
  show(id, { speech: { speak: (text) => said.push(text), listen }, language: 'it-IT' });
  await world.client.spaces.post(id, 'my_tool');
  await screen.findByText('asked: Creare 5 fogli?');
  fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
  hear('Sì, grazie!');
  await screen.findByText(/silent Sì, grazie! said yes/);
  await waitFor(() => expect(said).toEqual(['Creare 5 fogli?', '5 fogli creati']));
  expect(await decisionsOf(id, 1)).toEqual([true]);
});

test('a typed no rejects, words that are neither find tools, and decide: false decides nothing', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  const shown = show(id, { speech: {}, decide: false, language: 'it' });
  await world.client.spaces.post(id, 'my_tool');
  await screen.findByText('asked: Creare 5 fogli?');
  fireEvent.change(screen.getByLabelText('Words'), { target: { value: 'no' } });
  await screen.findByText(/^silent no/);
  await screen.findByText('asked: Creare 5 fogli?');
  shown.unmount();
  show(id, { speech: {}, language: 'it' });
  await screen.findByText('asked: Creare 5 fogli?');
  fireEvent.change(screen.getByLabelText('Words'), { target: { value: 'crea' } });
  await screen.findByText(/silent crea my_tool by crea/);
  fireEvent.change(screen.getByLabelText('Words'), { target: { value: 'no grazie' } });
  await screen.findByText(/silent no grazie said no/);
  await waitFor(() => expect(screen.queryByText(/^asked/)).toBeNull());
  expect(await decisionsOf(id, 1)).toEqual([false]);
});

test('a yes is about what was asked when the listening began, and goes where the page sends it', async () => {
  const { id } = await world.client.spaces.create({ agent: 'tutor' });
  const { hear, listen } = microphone();
  const decided: Array<[string, boolean]> = [];
  const decide = async (approvalId: string, approved: boolean) => void decided.push([approvalId, approved]);
  show(id, {
    speech: { listen },
    decide,
    language: 'it',
    decisionWords: { it: { yes: ['aggiudicato'], no: [] } },
  });
  fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
  await screen.findByText(/^listening/);
  await world.client.spaces.post(id, 'my_tool');
  await screen.findByText('asked: Creare 5 fogli?');
  // The proposal came while somebody was speaking already.
  hear('aggiudicato');
  await screen.findByText(/^silent aggiudicato/);
  expect(decided).toEqual([]);
  fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
  hear('Aggiudicato!');
  await screen.findByText(/said yes/);
  const [approval] = (await world.client.approvals.list({ space: id })).approvals;
  expect(decided).toEqual([[approval?.approvalId, true]]);
});
