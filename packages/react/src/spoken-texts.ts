import { type Conversation, callsOf } from './conversation.js';
import { isSettled } from './message.js';

/** Remembers what was said aloud, so that each text is said once and what happened before is not said at all. */
export class SpokenTexts {
  readonly #said = new Set<string>();
  /** Calls that were seen before they had an outcome. */
  readonly #open = new Set<string>();

  /** The texts that are new: proposals that wait for a decision, and outputs of calls that were seen to run. */
  next(conversation: Conversation): string[] {
    const texts: string[] = [];
    for (const call of callsOf(conversation)) {
      const { approval } = call;
      if (approval?.state === 'requested') this.#say(`proposal:${approval.id}`, approval.voice, texts);
      if (!isSettled(call.state)) this.#open.add(call.id);
      else if (this.#open.has(call.id)) this.#say(`completion:${call.id}`, call.voice, texts);
    }
    return texts;
  }

  #say(key: string, text: string | undefined, texts: string[]): void {
    if (text === undefined || this.#said.has(key)) return;
    this.#said.add(key);
    texts.push(text);
  }
}
