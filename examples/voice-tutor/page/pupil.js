// The pupil's page: every step of a tool comes over the data channel, proposals are spoken, a yes or a no goes back over it.
import { readDecision, ToolgateClient } from '@toolgate/client';
import { canListen, listen, speak } from './speech.js';

const element = (id) => document.getElementById(id);
const STEPS = {
  TOOL_PROPOSED: 'proposto',
  TOOL_ACCEPTED: 'accettato',
  TOOL_REJECTED: 'rifiutato',
  TOOL_EXECUTING: 'in corso',
  TOOL_COMPLETED: 'completato',
  TOOL_ERROR: 'non riuscito',
};

/** The proposals that wait for a yes or a no, by approval, oldest first. */
const proposals = new Map();

const session = await post('/session', {});
const client = new ToolgateClient({
  url: location.origin,
  publicKey: session.publicKey,
  token: session.token,
});
const channel = client.spaces.connectRtc(session.spaceId, {
  onOpen: () => show('connection', 'Collegato.'),
  onCut: () => show('connection', 'Mi ricollego…'),
  onError: (error) => show('connection', `Scollegato: ${error.message}`),
  onMessage: handle,
});

element('words-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = element('words').value.trim();
  element('words').value = '';
  if (text) void answer(text, oldest());
});
element('speak').hidden = !canListen;
element('speak').addEventListener('click', () => hear(oldest()));
for (const [id, text] of Object.entries({ yes: 'sì', no: 'no' }))
  element(id).addEventListener('click', () => answer(text, oldest()));

/** One step of a tool. */
function handle(message) {
  const { type, toolId, payload = {} } = message;
  add('steps', `${toolId}: ${STEPS[type]}`);
  switch (type) {
    case 'TOOL_PROPOSED':
      // Without an approval it is a call for clients that execute tools; the tutor does that.
      if (!payload.approvalId) break;
      proposals.set(payload.approvalId, message);
      if (proposals.size === 1) void ask(message);
      break;
    case 'TOOL_ACCEPTED':
    case 'TOOL_REJECTED':
      // Also when somebody else has decided, or nobody in time.
      if (!proposals.delete(payload.approvalId)) break;
      if (type === 'TOOL_REJECTED') say('Va bene, niente foglio.');
      if (oldest()) void ask(oldest());
      break;
    case 'TOOL_COMPLETED':
      if (payload.voice) say(payload.voice.text);
      break;
    case 'TOOL_ERROR':
      say('Non ci sono riuscito.');
      break;
    default:
  }
  showDecision();
}

/** Shows what can be said now: a yes or a no while something is proposed. */
function showDecision() {
  const isAsked = proposals.size > 0;
  element('decision').hidden = !isAsked;
  element('words').placeholder = isAsked ? 'sì o no' : 'crea un foglio';
}

/** The proposal that was asked: one at a time, so that a yes can mean no other. */
function oldest() {
  return proposals.values().next().value;
}

/** Asks aloud, and listens for the answer. */
async function ask(proposal) {
  const { toolId, payload } = proposal;
  await say(payload.voice?.text ?? `${toolId}?`);
  if (canListen && proposals.has(payload.approvalId)) await hear(proposal);
}

/** What is heard is about the proposal that was asked when the listening began. */
async function hear(proposal) {
  const text = await listen();
  if (text) await answer(text, proposal);
}

/** A yes or a no decides on the proposal; without one, words ask for a tool. */
async function answer(text, proposal) {
  add('talk', `🎤 ${text}`);
  const approved = proposal && readDecision(text, { language: 'it' });
  try {
    if (approved === true) await channel.accept(proposal);
    else if (approved === false) await channel.reject(proposal, { reason: text });
    else if (proposal) say('Dimmi sì o no.');
    else await request(text);
  } catch (error) {
    add('talk', `⚠️ ${error.message}`);
  }
}

async function request(text) {
  const { token, spaceId } = session;
  const { tool } = await post('/words', { token, spaceId, text, topic: element('topic').value });
  if (!tool) say('Non ho capito.');
}

/** Says a text aloud, and shows it: not every browser has a voice, and not every pupil hears. */
function say(text) {
  add('talk', `🔊 ${text}`);
  return speak(text);
}

function show(id, text) {
  element(id).textContent = text;
}

function add(id, text) {
  const item = document.createElement('li');
  item.textContent = text;
  element(id).append(item);
}

async function post(path, body) {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
  const answered = await response.json();
  if (!response.ok) throw new Error(answered.detail);
  return answered;
}
