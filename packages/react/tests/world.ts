import { ToolgateClient } from '@toolgate/client';
import {
  type Gateway,
  type Model,
  type ModelReply,
  type Script,
  startGateway,
  startModel,
} from '@toolgate/test-support';

/** A gateway whose default agent follows a script, and a client of it. */
export interface World {
  readonly gateway: Gateway;
  readonly model: Model;
  readonly client: ToolgateClient;
  stop(): Promise<void>;
}

/** Starts a world in which the model follows `script`; without one, it calls the tools that the user names. */
export async function startWorld(script: Script = callsWhatIsNamed, config?: string): Promise<World> {
  const model = await startModel(script);
  const gateway = await startGateway({ model, ...(config === undefined ? {} : { config }) });
  const client = new ToolgateClient({ url: gateway.url, key: gateway.secretKey });
  return {
    gateway,
    model,
    client,
    stop: async () => {
      await gateway.stop();
      await model.stop();
    },
  };
}

/** Calls every tool whose name is in the user's last message; says what came of it afterwards. */
const callsWhatIsNamed: Script = ({ messages, tools = [] }): ModelReply => {
  const last = messages.at(-1);
  if (last?.role === 'tool') return { text: `It gave ${textOf(last.content)}.` };
  const asked = textOf(last?.content);
  const calls = tools.filter((tool) => asked.includes(tool.function.name));
  return calls.length === 0
    ? { text: `You said ${asked}.` }
    : {
        text: 'Let me see.',
        calls: calls.map((tool) => ({ name: tool.function.name, args: { amount: 5 } })),
      };
};

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content);
}
