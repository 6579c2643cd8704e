import { type Conversation, callsOf, openApprovals } from './conversation.js';
import { type Approval, isSettled } from './message.js';

/** The proposal that is asked aloud now: the oldest that has words. One at a time, so that a yes can mean no other. */
export function askedProposal(conversation: Conversation): Approval | undefined {
  return openApprovals(conversation).find(({ voice }) => voice !== undefined);
}

/** Remembers what was said aloud, so that each text is said once and what happened before is not said at all. */
export class SpokenTexts {
  readonly #said = new Set<string>();
  /** Calls that were seen before they had an outcome. */
  readonly #open = new Set<string>();

  /** The texts that are new: outputs of calls that were seen to run, then the proposal that waits for a decision. */
  next(conversation: Conversation): string[] {
    const texts: string[] = [];
    for (const call of callsOf(conversation)) {
      if (!isSettled(call.state)) this.#open.add(call.id);
      else if (this.#open.has(call.id)) this.#say(`completion:${call.id}`, call.voice, texts);
    }
    const asked = askedProposal(conversation);
    if (asked) this.#say(`proposal:${asked.id}`, asked.voice, texts);
    return texts;
  }

  #say(key: string, text: string | undefined, texts: string[]): void {
    if (text === undefined || this.#said.has(key)) return;
    this.#said.add(key);
    texts.push(text);
  }
}
