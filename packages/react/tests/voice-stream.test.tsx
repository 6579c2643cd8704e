// @vitest-environment happy-dom

import { cleanup, configure, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { wire } from '@toolgate/client';
import {
  callsOf,
  type SpeechPorts,
  ToolgateChatProvider,
  useSpace,
  useToolgateChat,
  useToolVoice,
} from '@toolgate/react';
import { useMemo } from 'react';
import { afterEach, expect, test } from 'vitest';
import { type ToldGateway, tellingGateway } from './told-gateway.js';

configure({ asyncUtilTimeout: 20_000 });
afterEach(cleanup);

const START = [
  { type: 'run-start', agent: 'tutor', depth: 0 },
  { type: 'step-start', step: 1 },
];

const callOf = (number: number) => ({
  toolCallId: `call_${number}`,
  toolName: 'my_tool',
  placement: 'server',
});
const opens = (number: number) => ({ type: 'tool-input-available', ...callOf(number), input: {} });
const ends = (number: number) => ({
  type: 'tool-output-available',
  ...callOf(number),
  output: {},
  voice: { text: `Fatto ${number}` },
});
const proposes = (number: number, members: object = {}) => ({
  type: 'tool-approval-request',
  ...callOf(number),
  approvalId: `appr_${number}`,
  input: {},
  expiresAt: '2030-01-01T00:10:00Z',
  voice: { text: `Proposta ${number}?` },
  ...members,
});
const decides = (number: number) => ({
  type: 'tool-approval-response',
  ...callOf(number),
  approvalId: `appr_${number}`,
  approved: true,
});

/** Events in the order of their places, the first at `place` million. */
function events(place: number, ...told: object[]): wire.Event[] {
  const common = { runId: 'run_1', spaceId: 'space_1', time: '2030-01-01T00:00:00Z' };
  return told.map(
    (event, index) => ({ ...common, seq: (place + index) * 1e6, ...event }) as unknown as wire.Event,
  );
}

/** A page with voice on this gateway, and what it says aloud. */
function open(gateway: ToldGateway, spaceId?: string, refuses: () => boolean = () => false): string[] {
  const said: string[] = [];
  render(
    <ToolgateChatProvider client={gateway.connect()} {...(spaceId && { defaultSpaceId: spaceId })}>
      <Page said={said} refuses={refuses} />
    </ToolgateChatProvider>,
  );
  return said;
}

function Page({ said, refuses }: { said: string[]; refuses: () => boolean }) {
  const { spaceId, send } = useToolgateChat();
  const calls = callsOf(useSpace(spaceId));
  const speech = useMemo<SpeechPorts>(
    () => ({
      // As a browser does it: later, and without a word.
      speak: (text, _, onRefused) => (refuses() ? queueMicrotask(() => onRefused?.()) : said.push(text)),
    }),
    [said, refuses],
  );
  const voice = useToolVoice(spaceId, { language: 'it', speech });
  return (
    <>
      <p>{calls.map(({ id, state }) => `${id} ${state}`).join()}</p>
      <p>asked: {voice.proposal?.id}</p>
      <p>error: {voice.error?.message}</p>
      <p>{voice.isMuted ? 'muted' : 'aloud'}</p>
      <button type="button" onClick={() => void send('go')}>
        Send
      </button>
      <button type="button" onClick={() => void voice.answer('sì').catch(() => {})}>
        Yes
      </button>
    </>
  );
}

const texts = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `Fatto ${from + index}`);

/** The events of calls that nobody is asked about, each settled right after it began. */
const calls = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => [opens(from + index), ends(from + index)]).flat();

test('calls that nobody is asked about are confirmed aloud, however fast they come', async () => {
  const gateway = tellingGateway(...events(1, ...START));
  const said = open(gateway, gateway.spaceId);
  await gateway.isAsked;
  gateway.tell(...events(10, ...calls(1, 10)));
  await waitFor(() => expect(said).toEqual(texts(1, 10)));
});

test('a reload says nothing again, also when the past comes in pieces', async () => {
  const gateway = tellingGateway(
    ...events(1, ...START, opens(1), proposes(1), decides(1), ends(1), ...calls(2, 3)),
  );
  gateway.stopAt(4e6);
  const said = open(gateway, gateway.spaceId);
  await gateway.isAsked;
  await screen.findByText('call_1 approval-requested');
  gateway.goOn();
  await screen.findByText(/call_3 output-available/);
  gateway.tell(...events(20, ...calls(4, 5)));
  await waitFor(() => expect(said).toEqual(texts(4, 5)));
});

test('a proposal that waits is asked of who opens the page', async () => {
  const gateway = tellingGateway(...events(1, ...START, ...calls(1, 2), opens(3), proposes(3)));
  const said = open(gateway, gateway.spaceId);
  await waitFor(() => expect(said).toEqual(['Proposta 3?']));
});

test('a proposal that waits is asked also where the log ends with events that the user does not see', async () => {
  const hidden = { type: 'tool-sampling', ...callOf(4), number: 1 };
  const past = events(1, ...START, ...calls(1, 2), opens(3), proposes(3), hidden, hidden);
  const gateway = tellingGateway(...past);
  const said = open(gateway, gateway.spaceId);
  await waitFor(() => expect(said).toEqual(['Proposta 3?']));
  gateway.tell(...events(20, decides(3), ends(3)));
  await waitFor(() => expect(said).toEqual(['Proposta 3?', 'Fatto 3']));
});

test('what the browser refuses to say before somebody uses the page is said then, and what was decided is not', async () => {
  let isUsed = false;
  const gateway = tellingGateway(...events(1, ...START, ...calls(1, 1), opens(2), proposes(2)));
  const said = open(gateway, gateway.spaceId, () => !isUsed);
  await screen.findByText('muted');
  gateway.tell(...events(20, decides(2), ends(2), opens(3), proposes(3)));
  await screen.findByText('asked: appr_3');
  // A key that the browser does not take for a gesture changes nothing.
  fireEvent.keyDown(document.body, { key: 'Escape' });
  await screen.findByText('muted');
  expect(said).toEqual([]);
  isUsed = true;
  await waitFor(() => {
    // The page listens for a gesture a moment after it is drawn.
    fireEvent.click(document.body);
    expect(said).toEqual(['Fatto 2', 'Proposta 3?']);
  });
  await screen.findByText('aloud');
  gateway.tell(...events(30, ...calls(4, 4)));
  await waitFor(() => expect(said).toEqual(['Fatto 2', 'Proposta 3?', 'Fatto 4']));
});

test('what happens while the connection is cut is said once, and what was said before is not', async () => {
  const gateway = tellingGateway(...events(1, ...START));
  const said = open(gateway, gateway.spaceId);
  await gateway.isAsked;
  gateway.tell(...events(10, ...calls(1, 2), opens(3)));
  await waitFor(() => expect(said).toEqual(texts(1, 2)));
  gateway.cut();
  gateway.tell(...events(20, ends(3), ...calls(4, 5)));
  gateway.letIn();
  await waitFor(() => expect(said).toEqual(texts(1, 5)));
  gateway.tell(...events(30, ...calls(6, 6)));
  await waitFor(() => expect(said).toEqual(texts(1, 6)));
});

test('a page that opens while the gateway is away says what happens after it is back', async () => {
  const gateway = tellingGateway(...events(1, ...START, ...calls(1, 2)));
  gateway.cut();
  const said = open(gateway, gateway.spaceId);
  gateway.letIn();
  await gateway.isAsked;
  gateway.tell(...events(20, ...calls(3, 4)));
  await waitFor(() => expect(said).toEqual(texts(3, 4)));
});

test('the first calls of a new chat are confirmed aloud, however slow the gateway is to say where it stands', async () => {
  const gateway = tellingGateway();
  gateway.holdRuns();
  const said = open(gateway);
  fireEvent.click(screen.getByRole('button', { name: 'Send' }));
  gateway.tell(...events(1, ...START, ...calls(1, 2)));
  await waitFor(() => expect(said).toEqual(texts(1, 2)));
  gateway.goOn();
});

test('a proposal that others must decide on does not keep the next from being asked', async () => {
  const gateway = tellingGateway(...events(1, ...START));
  const said = open(gateway, gateway.spaceId);
  await gateway.isAsked;
  gateway.tell(...events(10, opens(1), proposes(1, { mayDecide: false }), opens(2), proposes(2)));
  await screen.findByText('asked: appr_2');
  expect(said).toEqual(['Proposta 2?']);
  fireEvent.click(screen.getByRole('button', { name: 'Yes' }));
  await waitFor(() => expect(gateway.decided).toEqual(['appr_2']));
});

test('a decision that is refused moves on to the next proposal', async () => {
  const gateway = tellingGateway(...events(1, ...START));
  const said = open(gateway, gateway.spaceId);
  await gateway.isAsked;
  gateway.refuse('appr_1');
  gateway.tell(...events(10, opens(1), proposes(1), opens(2), proposes(2)));
  await screen.findByText('asked: appr_1');
  fireEvent.click(screen.getByRole('button', { name: 'Yes' }));
  await screen.findByText('asked: appr_2');
  screen.getByText('error: others decide on this call');
  await waitFor(() => expect(said).toEqual(['Proposta 1?', 'Proposta 2?']));
  fireEvent.click(screen.getByRole('button', { name: 'Yes' }));
  await waitFor(() => expect(gateway.decided).toEqual(['appr_1', 'appr_2']));
});
