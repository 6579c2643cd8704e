import type { ToolgateClient } from './client.js';
import type { CallOptions } from './resources.js';
import { ToolRegistry } from './tool-registry.js';
import type { ToolMatch } from './wire.js';

/** The texts that tools have said aloud; a thin surface over `client.tools`. */
export class VoiceFeedbackInjector {
  readonly #client: ToolgateClient;
  constructor(gateway: ToolgateClient | ToolRegistry) {
    this.#client = gateway instanceof ToolRegistry ? gateway.client : gateway;
  }

  /** What proposes a tool, with the context's values; `undefined` if nothing is said. */
  async injectProposal(
    id: string,
    context: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<string | undefined> {
    return (await this.#client.tools.voice(id, { kind: 'prompt', context }, options)).text ?? undefined;
  }

  /** What confirms a tool, with the result's values; `undefined` if nothing is said. */
  async injectConfirmation(
    id: string,
    result: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<string | undefined> {
    const said = await this.#client.tools.voice(id, { kind: 'feedback', context: result }, options);
    return said.text ?? undefined;
  }

  /** Tools that the topic and the keywords suggest, best first. */
  getContextualTriggers(
    { topic, keywords = [] }: { topic?: string; keywords?: readonly string[] },
    options: CallOptions = {},
  ): Promise<ToolMatch[]> {
    const text = [topic, ...keywords].filter((word) => word !== undefined && word !== '').join(' ');
    if (text === '') return Promise.resolve([]);
    const context = topic === undefined ? {} : { context: { topic } };
    return this.#client.tools.match(text.slice(0, TEXT_CHARS_MAX), context, options);
  }
}

/** Longest utterance that the gateway takes. */
const TEXT_CHARS_MAX = 1000;

/** The texts that the tools of a gateway have said aloud. */
export function createVoiceFeedbackInjector(gateway: ToolgateClient | ToolRegistry): VoiceFeedbackInjector {
  return new VoiceFeedbackInjector(gateway);
}
