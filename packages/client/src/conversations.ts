import type { ChatMessage } from './chunk.js';

/** How many conversations are remembered; the one that was continued longest ago goes first. */
const CONVERSATIONS_MAX = 64;

/** Which space holds which conversation, so that a caller who sends all messages each time goes on in the same one. */
export class Conversations {
  /** What was said by others than the agent, by space; the last entry is the newest. */
  readonly #said = new Map<string, string[]>();

  /** The space whose conversation these messages continue: the one with the most in common. */
  find(messages: ChatMessage[], agent: string | undefined): string | undefined {
    const words = wordsOf(messages, agent);
    let best: { space: string; length: number } | undefined;
    for (const [space, earlier] of this.#said) {
      const continues =
        earlier.length < words.length && earlier.every((word, index) => word === words[index]);
      if (continues && earlier.length >= (best?.length ?? 0)) best = { space, length: earlier.length };
    }
    return best?.space;
  }

  remember(space: string, messages: ChatMessage[], agent: string | undefined): void {
    this.#said.delete(space);
    this.#said.set(space, wordsOf(messages, agent));
    const [oldest] = this.#said.keys();
    if (this.#said.size > CONVERSATIONS_MAX && oldest !== undefined) this.#said.delete(oldest);
  }
}

/** What the agent said is left out: callers keep it, shorten it or leave it out as they like. */
function wordsOf(messages: ChatMessage[], agent: string | undefined): string[] {
  const said = messages.filter(({ role }) => role !== 'assistant');
  return [`agent ${agent ?? ''}`, ...said.map(({ role, content }) => `${role} ${JSON.stringify(content)}`)];
}
