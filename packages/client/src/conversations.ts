import type { ChatMessage } from './chunk.js';

/** Conversations that are remembered; the least recently continued one is dropped first. */
const CONVERSATIONS_MAX = 64;

/**
 * Maps conversations to spaces, so that a caller who sends all messages each time continues in the same
 * space.
 */
export class Conversations {
  /** Messages of others than the agent, by space; the last entry is the most recent. */
  readonly #messages = new Map<string, string[]>();

  /** The space whose conversation these messages continue: the one with the longest common prefix. */
  find(messages: ChatMessage[], agent: string | undefined): string | undefined {
    const texts = textsOf(messages, agent);
    let best: { space: string; length: number } | undefined;
    for (const [space, earlier] of this.#messages) {
      const continues =
        earlier.length < texts.length && earlier.every((text, index) => text === texts[index]);
      if (continues && earlier.length >= (best?.length ?? 0)) best = { space, length: earlier.length };
    }
    return best?.space;
  }

  remember(space: string, messages: ChatMessage[], agent: string | undefined): void {
    this.#messages.delete(space);
    this.#messages.set(space, textsOf(messages, agent));
    const [oldest] = this.#messages.keys();
    if (this.#messages.size > CONVERSATIONS_MAX && oldest !== undefined) this.#messages.delete(oldest);
  }
}

/** Messages of the agent are left out: callers keep, shorten or drop them. */
function textsOf(messages: ChatMessage[], agent: string | undefined): string[] {
  const others = messages.filter(({ role }) => role !== 'assistant');
  return [`agent ${agent ?? ''}`, ...others.map(({ role, content }) => `${role} ${JSON.stringify(content)}`)];
}
