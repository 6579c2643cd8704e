import * as ai5 from 'ai-v5';
import * as first5 from 'ai-v5-first';
import * as ai6 from 'ai-v6';
import * as first6 from 'ai-v6-first';
import * as ai7 from 'ai-v7';
import * as first7 from 'ai-v7-first';
import { Chat as Chat5 } from 'react-v5';
import { Chat as Chat6 } from 'react-v6';
import { Chat as Chat7 } from 'react-v7';

export type Dialect = 'v5' | 'v6' | 'v7';

/** A part of a message, as far as the tests look at it. */
export interface Part {
  type: string;
  text?: string;
  state?: string;
  toolCallId?: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  providerExecuted?: boolean;
  approval?: { id: string; approved?: boolean; reason?: string };
  data?: Record<string, unknown>;
}

export interface Message {
  id: string;
  role: 'user' | 'assistant';
  parts: Part[];
}

/** What the three majors' `Chat` has in common; each is the class that `useChat` holds. */
export interface ChatOfAnyMajor {
  readonly id: string;
  readonly status: 'submitted' | 'streaming' | 'ready' | 'error';
  readonly error: Error | undefined;
  messages: Message[];
  sendMessage(message?: { text: string }, options?: { body?: object }): Promise<void>;
  regenerate(): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
  clearError(): void;
  addToolOutput(output: object): Promise<void>;
  /** From v6 on. */
  addToolApprovalResponse(response: { id: string; approved: boolean; reason?: string }): Promise<void>;
}

export interface Transport {
  sendMessages(options: object): Promise<ReadableStream<{ type: string }>>;
}

/** One major of the AI SDK. */
export interface Sdk {
  dialect: Dialect;
  Chat: new (options: object) => ChatOfAnyMajor;
  DefaultChatTransport: new (options: object) => Transport;
  /** The transport of the major's first release, whose schemas refuse what they do not know. */
  StrictTransport: new (
    options: object,
  ) => Transport;
  /** When the client goes on by itself. */
  sendAutomaticallyWhen(options: { messages: Message[] }): boolean;
  approvals: boolean;
}

// The majors' types differ in what the tests never touch.
const sdk = (fields: Record<keyof Sdk, unknown>): Sdk => fields as unknown as Sdk;
type Asked = never;

export const sdks: Sdk[] = [
  sdk({
    dialect: 'v5',
    Chat: Chat5,
    DefaultChatTransport: ai5.DefaultChatTransport,
    StrictTransport: first5.DefaultChatTransport,
    sendAutomaticallyWhen: (options: Asked) => ai5.lastAssistantMessageIsCompleteWithToolCalls(options),
    approvals: false,
  }),
  sdk({
    dialect: 'v6',
    Chat: Chat6,
    DefaultChatTransport: ai6.DefaultChatTransport,
    StrictTransport: first6.DefaultChatTransport,
    sendAutomaticallyWhen: (options: Asked) =>
      ai6.lastAssistantMessageIsCompleteWithToolCalls(options) ||
      ai6.lastAssistantMessageIsCompleteWithApprovalResponses(options),
    approvals: true,
  }),
  sdk({
    dialect: 'v7',
    Chat: Chat7,
    DefaultChatTransport: ai7.DefaultChatTransport,
    StrictTransport: first7.DefaultChatTransport,
    sendAutomaticallyWhen: (options: Asked) =>
      ai7.lastAssistantMessageIsCompleteWithToolCalls(options) ||
      ai7.lastAssistantMessageIsCompleteWithApprovalResponses(options),
    approvals: true,
  }),
];

export const sdksWithApprovals: Sdk[] = sdks.filter((each) => each.approvals);
