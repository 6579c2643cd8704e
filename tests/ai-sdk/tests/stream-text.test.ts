import type { ModelReply } from '@toolgate/test-support';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Chunk, comparable, difference } from '../src/chunk-diff.ts';
import type { Client } from '../src/client.ts';
import { chunksOf } from '../src/recorder.ts';
import { type Reference, type ReferenceTool, startReference } from '../src/reference.ts';
import { useScene } from '../src/scene.ts';
import { type Sdk, sdksWithApprovals } from '../src/sdk.ts';
import { clientTool, serverTool } from '../src/world.ts';

/**
 * Chunk by chunk, the gateway's stream against that of the SDK's own `streamText` with the same model. `meant` lists
 * every difference with its reason; one that is not listed fails, and so does one that is listed and not there.
 */
interface Scenario {
  what: string;
  script: Array<string | ModelReply>;
  tools?: ReferenceTool[];
  /** How the client executes `weather`. */
  execute?: () => unknown;
  approve?: boolean;
  /** What is read is not for the first release of v7. */
  strict?: boolean;
  meant: string[];
  /** Where v7 can say more than v6. */
  meantInV7?: string[];
}

const scene = useScene();
const PAID = 'paid';
const FAILURE = 'no such city';
function fails(): never {
  throw new Error(FAILURE);
}
const asks = (...names: string[]): ModelReply => ({
  text: 'I look.',
  calls: names.map((name) => ({ name, args: { city: 'Paris' } })),
});
const refund: ReferenceTool = { name: 'refund', execute: () => PAID };
const refundOnApproval: ReferenceTool = { ...refund, needsApproval: true };

// Where the run stands: one part per step, which the AI SDK keeps and shows to the application.
const status = (step: number, is: string): string => `+ data-run {"id":"step${step}","data":"${is}"}`;
// A continuation goes on with the message that the client has. Naming it is optional, and a wrong name would split it.
const named = '- start {"messageId":"message1"}';
const unnamed = '+ start';
// Another client may have answered first: the continuation tells what the call ended with, which every client then shows.
const told = (call: number, output: string): string =>
  `+ tool-output-available {"toolCallId":"call${call}","output":"${output}"}`;
// The SDK's `onToolCall` and its helpers that send by themselves leave alone what is `providerExecuted`. Without it they would
// answer for tools that run on the gateway.
const theirInput =
  '- tool-input-available {"toolCallId":"call1","toolName":"refund","input":{"city":"Paris"}}';
const ourInput =
  '+ tool-input-available {"toolCallId":"call1","toolName":"refund","input":{"city":"Paris"},"providerExecuted":true}';
const theirOutput = '- tool-output-available {"toolCallId":"call1","output":"paid"}';
const ourOutput = '+ tool-output-available {"toolCallId":"call1","output":"paid","providerExecuted":true}';
// The same of a call that fails.
const failed = `"toolCallId":"call1","errorText":"${FAILURE}"`;
const toldFailure = `+ tool-output-error {${failed}}`;
const theirFailure = `- tool-output-error {${failed}}`;
const ourFailure = `+ tool-output-error {${failed},"providerExecuted":true}`;
// The client reads nothing behind an error: before it the text is ended, which else would be shown as streaming for ever.
const theirError = '- error {"errorText":"as the script says"}';
const theirFinish = '- finish {"finishReason":"error"}';
const errorMoved = [theirError, '- finish-step', theirFinish, theirError.replace('-', '+')];
// The gateway asks again when a model breaks off. Only v7 can take back the words that the first attempt has sent.
const askedAgain = [
  ...['+ text-start {"id":"text2"}', '+ text-delta {"id":"text2","delta":"Hello you there."}'],
  ...['+ text-end {"id":"text2"}', status(1, 'completed'), theirFinish, '+ finish {"finishReason":"stop"}'],
];
const reset = ['- text-end {"id":"text1"}', '+ reset-step', status(1, 'running')];
// Input that nobody has allowed is not said to be available: a client executes its own tools by that. It is once it is allowed.
const inputWithheld = theirInput;
const inputAllowed = ourInput;
// A step begins before the model is asked, so that what the gateway reports of it has a place.
const stepBegun = '+ start-step';

const scenarios: Scenario[] = [
  {
    what: 'text',
    script: ['Hello you there.'],
    meant: [status(1, 'running'), status(1, 'completed')],
  },
  {
    what: 'a call of the server',
    script: [asks('refund'), 'All done.'],
    tools: [refund],
    meant: [
      status(1, 'running'),
      ...[theirInput, theirOutput, ourInput, ourOutput],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'one client call and its continuation',
    script: [asks('weather'), 'All done.'],
    tools: [{ name: 'weather' }],
    meant: [
      ...[status(1, 'running'), status(1, 'waiting_tool')],
      ...[named, unnamed, told(1, 'sunny')],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'several client calls and their continuation',
    script: [asks('weather', 'time'), 'All done.'],
    tools: [{ name: 'weather' }, { name: 'time' }],
    meant: [
      ...[status(1, 'running'), status(1, 'waiting_tool')],
      ...[named, unnamed, told(1, 'sunny'), told(2, 'noon')],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'client calls step after step',
    script: [asks('weather'), asks('weather', 'time'), 'All done.'],
    tools: [{ name: 'weather' }, { name: 'time' }],
    meant: [
      ...[status(1, 'running'), status(1, 'waiting_tool')],
      ...[named, unnamed, told(1, 'sunny')],
      ...[status(2, 'running'), status(2, 'waiting_tool')],
      ...[named, unnamed, told(2, 'sunny'), told(3, 'noon')],
      ...[status(3, 'running'), status(3, 'completed')],
    ],
  },
  {
    what: 'an approval that is granted',
    script: [asks('refund'), 'All done.'],
    tools: [refundOnApproval],
    approve: true,
    meant: [
      ...[status(1, 'running'), inputWithheld, status(1, 'waiting_approval')],
      ...[named, theirOutput, unnamed, inputAllowed, ourOutput],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'an approval that is denied',
    script: [asks('refund'), 'All done.'],
    tools: [refundOnApproval],
    approve: false,
    meant: [
      ...[status(1, 'running'), inputWithheld, status(1, 'waiting_approval')],
      ...[named, unnamed],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'an error of the model',
    script: [{ status: 400 }],
    meant: [stepBegun, status(1, 'running')],
  },
  {
    what: 'an error of the model in mid-text',
    script: [{ text: 'Hello you there.', failsWith: 'invalid_request_error' }],
    meant: [status(1, 'running'), ...errorMoved],
  },
  {
    what: 'an error of the model in mid-text that may pass',
    script: [{ text: 'Hello you', failsWith: 'server_error' }, 'Hello you there.'],
    strict: false,
    meant: [status(1, 'running'), theirError, ...askedAgain],
    meantInV7: [status(1, 'running'), theirError, ...reset, ...askedAgain],
  },
  {
    what: 'a client call that fails, and its continuation',
    script: [asks('weather'), 'All done.'],
    tools: [{ name: 'weather' }],
    execute: fails,
    meant: [
      ...[status(1, 'running'), status(1, 'waiting_tool')],
      ...[named, unnamed, toldFailure],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'one client call of two that fails, and their continuation',
    script: [asks('weather', 'time'), 'All done.'],
    tools: [{ name: 'weather' }, { name: 'time' }],
    execute: fails,
    meant: [
      ...[status(1, 'running'), status(1, 'waiting_tool')],
      ...[named, unnamed, toldFailure, told(2, 'noon')],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'a call of the server that fails',
    script: [asks('refund'), 'All done.'],
    tools: [{ ...refund, execute: fails }],
    meant: [
      status(1, 'running'),
      ...[theirInput, theirFailure, ourInput, ourFailure],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
  {
    what: 'a call of the server that fails after its approval',
    script: [asks('refund'), 'All done.'],
    tools: [{ ...refundOnApproval, execute: fails }],
    approve: true,
    meant: [
      ...[status(1, 'running'), inputWithheld, status(1, 'waiting_approval')],
      ...[named, theirFailure, unnamed, inputAllowed, ourFailure],
      ...[status(2, 'running'), status(2, 'completed')],
    ],
  },
];

describe.each(sdksWithApprovals)('the stream beside streamText of $dialect', (sdk) => {
  let reference: Reference;
  beforeAll(async () => {
    reference = await startReference(sdk.dialect, { baseUrl: scene.world.modelUrl });
  });
  afterAll(() => reference.stop());

  it.each(scenarios)('is the same for $what', async ({ meant, meantInV7 = meant, ...scenario }) => {
    const theirs = await play(sdk, scenario, reference);
    const ours = await play(sdk, scenario);
    expect(difference(lines(theirs), lines(ours))).toEqual(sdk.dialect === 'v7' ? meantInV7 : meant);
  });

  /** The conversation with the reference, or with the gateway. */
  async function play(
    sdk: Sdk,
    { script, tools = [], approve, strict, execute = () => 'sunny' }: Omit<Scenario, 'meant' | 'meantInV7'>,
    reference?: Reference,
  ): Promise<Client> {
    scene.world.script(...script);
    const place = reference ? { url: reference.url } : { agent: await agentWith(tools) };
    if (reference) reference.tools = tools;
    const client = scene.open(sdk, {
      ...place,
      ...(strict === undefined ? {} : { strict }),
      execute: { weather: execute, time: () => 'noon' },
    });
    await client.say('go');
    if (approve !== undefined) {
      const id = client.call('refund').approval?.id ?? '';
      await client.chat.addToolApprovalResponse({ id, approved: approve });
      await client.rest();
    }
    return client;
  }
});

function agentWith(tools: ReferenceTool[]): Promise<string> {
  const definition = ({ name, execute, needsApproval }: ReferenceTool): object => {
    if (!execute) return clientTool(name);
    const approval = needsApproval ? { approval: 'always' } : {};
    if (execute !== fails) return serverTool(name, PAID, approval);
    const code = `throw new Error(${JSON.stringify(FAILURE)})`;
    return { ...serverTool(name, null, approval), executionType: 'compute', execution: { code } };
  };
  return scene.world.agent({ tools: tools.map(definition) });
}

/**
 * What a client read, without what is free: the words around an error's own, and what a `data-run` says beside the status.
 */
function lines(client: Client): string[] {
  const plain = (chunk: Chunk): Chunk => {
    if (chunk.type === 'error') return { type: 'error', errorText: 'as the script says' };
    if (String(chunk.errorText).includes(FAILURE)) return { ...chunk, errorText: FAILURE };
    if (chunk.type === 'data-run') return { ...chunk, data: (chunk.data as { status: string }).status };
    return chunk;
  };
  return comparable(client.recorder.exchanges.map(({ text }) => chunksOf(text).map(plain)));
}
