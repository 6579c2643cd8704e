import { CODES, ProtocolError } from './error.js';
import type { Event } from './wire.js';

/** The types of a tool message. */
export const ToolEventType = {
  /** The agent proposes a tool, or offers a call to clients that can execute it. */
  TOOL_PROPOSED: 'TOOL_PROPOSED',
  /** Somebody accepts a proposal. */
  TOOL_ACCEPTED: 'TOOL_ACCEPTED',
  /** Somebody rejects a proposal, or gives a claimed call back. */
  TOOL_REJECTED: 'TOOL_REJECTED',
  /** The tool runs, or a client claims the call and tells how far it is. */
  TOOL_EXECUTING: 'TOOL_EXECUTING',
  /** The tool gave an output. */
  TOOL_COMPLETED: 'TOOL_COMPLETED',
  /** The tool failed. */
  TOOL_ERROR: 'TOOL_ERROR',
} as const;
/** The type of a tool message. */
export type ToolEventType = (typeof ToolEventType)[keyof typeof ToolEventType];

/** A tool event on the data channel, in either direction. */
export interface ToolDataChannelMessage {
  type: ToolEventType;
  /** Name of the tool. */
  toolId: string;
  /** Details: `toolCallId`, `runId`, `approvalId`, `input` and the other members of the event. */
  payload?: Record<string, unknown>;
  /** Unix time in milliseconds. */
  timestamp: number;
  /** From a client: its name for the message, which the answer repeats. */
  id?: string;
  /** From the gateway: place of the event in the space, a cursor to come back to. */
  seq?: number;
}

/** What the gateway says of the channel itself. */
export const ChannelNoticeType = {
  CHANNEL_READY: 'CHANNEL_READY',
  CHANNEL_RECEIPT: 'CHANNEL_RECEIPT',
  CHANNEL_PROBLEM: 'CHANNEL_PROBLEM',
  CHANNEL_CURSOR: 'CHANNEL_CURSOR',
  CHANNEL_CLOSING: 'CHANNEL_CLOSING',
} as const;
/** The type of a notice. */
export type ChannelNoticeType = (typeof ChannelNoticeType)[keyof typeof ChannelNoticeType];

/** A notice about the channel itself. */
export interface ChannelNotice {
  type: ChannelNoticeType;
  payload?: Record<string, unknown>;
  timestamp: number;
  id?: string;
  seq?: number;
}

const ID_CHARS_MAX = 64;

/** A message with the present time. */
export function createToolMessage(
  type: ToolEventType,
  toolId: string,
  payload?: Record<string, unknown>,
): ToolDataChannelMessage {
  return { type, toolId, ...(payload === undefined ? {} : { payload }), timestamp: Date.now() };
}

/** The message that tells of an event, as the data channel has it; `undefined` for an event that is about no step of a tool. */
export function toolMessageOf(event: Event): ToolDataChannelMessage | undefined {
  const type = typeOf(event);
  if (type === undefined) return undefined;
  const { type: name, toolName, seq, time, ...members } = event as Event & { toolName?: string };
  const payload = { event: name, ...members };
  return { type, toolId: toolName ?? 'unknown', payload, timestamp: Date.parse(time), seq };
}

function typeOf(event: Event): ToolEventType | undefined {
  switch (event.type) {
    case 'tool-approval-request':
    case 'tool-released':
      return ToolEventType.TOOL_PROPOSED;
    case 'tool-input-available':
      // A call with a deadline is an offer to clients; one without waits for its approval first.
      return event.placement === 'client' && event.deadline ? ToolEventType.TOOL_PROPOSED : undefined;
    case 'tool-approval-response':
      return event.approved ? ToolEventType.TOOL_ACCEPTED : ToolEventType.TOOL_REJECTED;
    case 'tool-executing':
    case 'tool-progress':
      return ToolEventType.TOOL_EXECUTING;
    case 'tool-output-available':
      return ToolEventType.TOOL_COMPLETED;
    case 'tool-output-error':
      return ToolEventType.TOOL_ERROR;
    default:
      return undefined;
  }
}

/** The message as JSON text. */
export function serializeMessage(message: ToolDataChannelMessage): string {
  const { type, toolId, payload, timestamp, id, seq } = message;
  return JSON.stringify({ type, toolId, payload, timestamp, id, seq });
}

/** Reads a tool message. Throws a `ProtocolError` that names the member that is wrong. */
export function deserializeMessage(text: string): ToolDataChannelMessage {
  const members = objectOf(text);
  const { type } = members;
  if (!isOneOf(ToolEventType, type)) throw wrong('type', 'the name of a tool event');
  const { toolId } = members;
  if (typeof toolId !== 'string' || toolId === '') throw wrong('toolId', 'a text that is not empty');
  return { type, toolId, ...common(members) };
}

/** Reads whatever the gateway sends; `undefined` for a type that only a newer gateway knows. */
export function readChannelMessage(text: string): ToolDataChannelMessage | ChannelNotice | undefined {
  const { type, ...members } = objectOf(text);
  if (isOneOf(ToolEventType, type)) return deserializeMessage(text);
  return isOneOf(ChannelNoticeType, type) ? { type, ...common(members) } : undefined;
}

/** Whether a message is a notice about the channel itself. */
export function isNotice(message: ToolDataChannelMessage | ChannelNotice): message is ChannelNotice {
  return isOneOf(ChannelNoticeType, message.type);
}

function common(members: Record<string, unknown>): Omit<ChannelNotice, 'type'> {
  const { timestamp, payload, id, seq } = members;
  if (!isWhole(timestamp)) throw wrong('timestamp', 'a whole number that is not negative');
  if (!isAbsent(payload) && !isObject(payload)) throw wrong('payload', 'an object');
  if (!isAbsent(id) && !isId(id)) throw wrong('id', `a text of 1 to ${ID_CHARS_MAX} characters`);
  if (!isAbsent(seq) && !isWhole(seq)) throw wrong('seq', 'a whole number that is not negative');
  return {
    ...(isAbsent(payload) ? {} : { payload }),
    timestamp,
    ...(isAbsent(id) ? {} : { id }),
    ...(isAbsent(seq) ? {} : { seq }),
  };
}

function objectOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ProtocolError(CODES.protocol, 'a message must be a JSON object: it is not JSON', { cause });
  }
  if (!isObject(value)) throw new ProtocolError(CODES.protocol, 'a message must be a JSON object');
  return value;
}

function isOneOf<T extends string>(types: Record<string, T>, value: unknown): value is T {
  return typeof value === 'string' && Object.hasOwn(types, value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && [...value].length <= ID_CHARS_MAX;
}

function wrong(member: string, expected: string): ProtocolError {
  return new ProtocolError(CODES.protocol, `${member} must be ${expected}`, {
    errors: [{ pointer: `/${member}`, message: `must be ${expected}` }],
  });
}
