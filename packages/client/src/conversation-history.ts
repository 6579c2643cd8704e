import { isRecord } from './definition-rules.js';
import type { Spaces } from './resources.js';
import type { Event, Message } from './wire.js';

/** One message of a conversation, as text. */
export interface HistoryMessage {
  /** Who speaks: `notice` is what a plan has posted, which is no user's words. */
  role: 'user' | 'assistant' | 'notice';
  /** Its texts, without reasoning, images and calls. */
  text: string;
  /** Id of the entity that posted it. */
  from?: string;
}

/** How much of a conversation to read, from its end. */
export interface HistoryOptions {
  /** Messages; 50 by default. */
  messages?: number;
  /** Bytes of their texts together, in UTF-8; 65,536 by default. Nothing is cut: what does not fit is left out with all before it. */
  bytes?: number;
}

const MESSAGES = 50;
const BYTES = 65_536;
/** Runs behind which nothing is looked for. */
const RUNS = 50;

/** What was said in the last runs of a space, oldest first, as far as the reader may see it. */
export async function readHistory(
  { spaces }: { spaces: Pick<Spaces, 'runs' | 'stored'> },
  spaceId: string,
  { messages = MESSAGES, bytes = BYTES }: HistoryOptions,
  signal: AbortSignal,
): Promise<HistoryMessage[]> {
  const { runs, nextCursor } = await spaces.runs(spaceId, { limit: RUNS }, { signal });
  // The place of a run is that of its last event.
  const after = nextCursor && runs.length > 0 ? Math.min(...runs.map(({ seq }) => seq)) : 0;
  let turns: Turn[] = [];
  for await (const event of spaces.stored(spaceId, { after }, { signal })) {
    turns = fold(turns, event).slice(-messages);
  }
  return fitting(turns, bytes).map(({ runId: _, ...message }) => message);
}

/** A message, and of a reply its run. */
interface Turn extends HistoryMessage {
  runId?: string;
}

/** Adds a stored event. Unlike a page that shows a stream, it needs no deltas, no retries and no calls. */
function fold(turns: Turn[], event: Event): Turn[] {
  switch (event.type) {
    case 'history':
      // What was said before, in the words of who sends it: the model reads this and nothing earlier.
      return told(event.turns);
    case 'message':
      return said(turns, posted(event.message));
    case 'text-end':
      return replied(turns, event.runId ?? '', event.text);
    default:
      return turns;
  }
}

function said(turns: Turn[], turn: Turn): Turn[] {
  return turn.text === '' ? turns : [...turns, turn];
}

/** The texts of a run are one message until somebody else speaks. */
function replied(turns: Turn[], runId: string, text: string): Turn[] {
  const spoken = turns.findLastIndex(({ role }) => role !== 'assistant');
  const at = turns.findLastIndex((turn) => turn.runId === runId);
  const reply = turns[at];
  if (reply === undefined || at <= spoken) return said(turns, { role: 'assistant', text, runId });
  return turns.with(at, { ...reply, text: text === '' ? reply.text : `${reply.text}\n\n${text}` });
}

function posted({ parts, from, origin }: Message): Turn {
  return { role: origin ? 'notice' : 'user', text: textOf(parts), ...(from === undefined ? {} : { from }) };
}

function told(turns: unknown): Turn[] {
  const each = (Array.isArray(turns) ? turns : []).filter(isRecord);
  return each.reduce<Turn[]>(
    (before, { user, assistant }) =>
      said(before, { role: user === undefined ? 'assistant' : 'user', text: textOf(user ?? assistant) }),
    [],
  );
}

function textOf(parts: unknown): string {
  const texts = (Array.isArray(parts) ? parts : []).map((part: unknown) =>
    isRecord(part) && typeof part.text === 'string' ? part.text : '',
  );
  return texts.filter((text) => text !== '').join('\n\n');
}

/** The last messages that fit together. */
function fitting(turns: Turn[], bytesMax: number): Turn[] {
  let bytes = 0;
  const tooMuch = turns.findLastIndex(({ text }) => {
    bytes += new TextEncoder().encode(text).length;
    return bytes > bytesMax;
  });
  return turns.slice(tooMuch + 1);
}
