import type { ToolgateClient } from './client.js';
import { isRecord } from './definition-rules.js';
import type { CallOptions } from './resources.js';
import { ToolRegistry } from './tool-registry.js';
import type { ToolCall, ToolMatch } from './wire.js';

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

  /**
   * What confirms a tool, with the values of a handler's result, or of a call as `ToolOrchestrator.execute` and `tools.call`
   * return it. `undefined` if nothing is said, such as of a call that has no output and of `{ success: false }`.
   */
  async injectConfirmation(
    id: string,
    result: object = {},
    options: CallOptions = {},
  ): Promise<string | undefined> {
    const context = valuesOf(result);
    if (context === undefined) return undefined;
    const said = await this.#client.tools.voice(id, { kind: 'feedback', context }, options);
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

/** A call, with its arguments if they are known. */
type ConfirmedCall = ToolCall & { arguments?: Record<string, unknown> };

function isCall(result: object): result is ConfirmedCall {
  return 'toolCallId' in result && 'runId' in result && 'status' in result;
}

/** The values of the variables; `undefined` if there is nothing to confirm. */
function valuesOf(result: object): Record<string, unknown> | undefined {
  if (!isCall(result)) return valuesOfOutput(result);
  const { status, output, arguments: args } = result;
  return status === 'completed' ? valuesOfOutput(output, args) : undefined;
}

/** As the gateway reads them: from the output, its `data`, and then the arguments. */
function valuesOfOutput(
  output: unknown,
  args: Record<string, unknown> = {},
): Record<string, unknown> | undefined {
  if (!isRecord(output)) return args;
  if (output.success === false) return undefined;
  const { data } = output;
  return isRecord(data) ? { ...output, data: { ...args, ...data } } : { ...args, ...output };
}

/** Longest utterance that the gateway takes. */
const TEXT_CHARS_MAX = 1000;

/** The texts that the tools of a gateway have said aloud; of the default registry's gateway unless another is given. */
export function createVoiceFeedbackInjector(
  gateway: ToolgateClient | ToolRegistry = ToolRegistry.getInstance(),
): VoiceFeedbackInjector {
  return new VoiceFeedbackInjector(gateway);
}
