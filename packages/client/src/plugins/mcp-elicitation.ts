import { isRecord } from '../definition-rules.js';
import type { JsonSchema } from '../json-schema.js';
import { faultOfContent } from './mcp-answer-check.js';
import type { SdkQuestion } from './mcp-sdk.js';

/** A question of a server for a person. */
export interface McpQuestion {
  /** The server that asks, by the name that it was given here. */
  server: string;
  /** The server's words. */
  message: string;
  /** JSON Schema of the answer's `content`: a flat object. Absent when the person is to open `url`. */
  schema?: JsonSchema;
  /** An `http` or `https` address for the person to open. Show it, and open it only if the person agrees. */
  url?: string;
  /** Fires when the answer is no longer wanted. */
  signal: AbortSignal;
}

/** A person's answer. `content` only goes with `accept`, and only if the question has a schema. */
export type McpAnswer =
  | { action: 'accept'; content?: Record<string, unknown> }
  | { action: 'decline' | 'cancel' };

/** Answers questions of servers. */
export type McpElicitation = (question: McpQuestion) => McpAnswer | Promise<McpAnswer>;

const ACTIONS: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel']);

/** Asks, and checks the answer against the question. Throws if it does not match: then nothing of it is sent. */
export async function answerQuestion(
  ask: McpElicitation,
  server: string,
  { message, mode, requestedSchema, url }: SdkQuestion,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  if (mode === 'url') {
    if (!isWebAddress(url)) throw new Error(`the MCP server "${server}" asks to open what is no web address`);
    const { action } = await answerOf(ask, { server, message, url, signal });
    return { action };
  }
  const schema = requestedSchema as JsonSchema;
  const answer = await answerOf(ask, { server, message, schema, signal });
  if (answer.action !== 'accept') return { action: answer.action };
  const content = answer.content ?? {};
  const fault = faultOfContent(requestedSchema, content);
  if (fault)
    throw new Error(`the answer to the MCP server "${server}" does not match what it asked for, ${fault}`);
  return { action: 'accept', content };
}

async function answerOf(ask: McpElicitation, question: McpQuestion): Promise<McpAnswer> {
  let answer: unknown;
  try {
    answer = await ask(question);
  } catch (cause) {
    // The message goes to the server, which the program's own errors are not for.
    throw new Error('the question could not be asked: onElicitation failed', { cause });
  }
  if (isRecord(answer) && ACTIONS.has(answer.action)) return answer as McpAnswer;
  throw new Error('onElicitation gave no answer, expected {action: "accept" | "decline" | "cancel"}');
}

function isWebAddress(url: string | undefined): url is string {
  return url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
