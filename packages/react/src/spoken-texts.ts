import { type Conversation, callsOf, openApprovals } from './conversation.js';
import type { Approval } from './message.js';

/**
 * The proposal that is asked aloud now: the oldest that has words and that this user may decide on. One at a time, so
 * that a yes can mean no other. `refused` are those on which the gateway took no decision of this user.
 */
export function askedProposal(
  conversation: Conversation,
  refused: ReadonlySet<string> = NONE,
): Approval | undefined {
  return openApprovals(conversation).find(
    ({ id, mayDecide, voice }) => mayDecide && voice !== undefined && !refused.has(id),
  );
}

const NONE: ReadonlySet<string> = new Set();

/** Remembers what was said aloud, so that each text is said once and what happened before is not said at all. */
export class SpokenTexts {
  /** The texts that were said, by what they are about. */
  readonly #said = new Map<string, string>();

  /**
   * The texts that are new: outputs of calls that settled after `since`, then the proposal `asked`. Nothing while `since`,
   * where the space's log ended when the page began to listen, is not known: events come as fast from the past as live.
   */
  next(conversation: Conversation, asked: Approval | undefined, since: number | undefined): string[] {
    if (since === undefined) return [];
    const texts: string[] = [];
    const settled = callsOf(conversation).flatMap(({ id, voice, endedSeq = 0 }) =>
      endedSeq > since ? [{ id, voice, endedSeq }] : [],
    );
    for (const { id, voice } of settled.sort((one, other) => one.endedSeq - other.endedSeq)) {
      this.#say(`completion:${id}`, voice, texts);
    }
    // Half-way through the past, a proposal may be one that was decided later.
    if (asked && conversation.cursor >= since) this.#say(`proposal:${asked.id}`, asked.voice, texts);
    return texts;
  }

  /** A text could not be said: it is new again. */
  refused(text: string): void {
    for (const [key, said] of this.#said) if (said === text) this.#said.delete(key);
  }

  #say(key: string, text: string | undefined, texts: string[]): void {
    if (text === undefined || this.#said.has(key)) return;
    this.#said.set(key, text);
    texts.push(text);
  }
}
