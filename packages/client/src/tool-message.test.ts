import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ProtocolError } from './error.js';
import {
  createToolMessage,
  deserializeMessage,
  readChannelMessage,
  serializeMessage,
  ToolEventType,
} from './tool-message.js';

interface Vector {
  name: string;
  text: string;
  message?: Record<string, unknown>;
  error?: string;
}

const vectors: { messages: Vector[]; notices: Vector[] } = JSON.parse(
  readFileSync(new URL('../../../crates/tool-channel/vectors/messages.json', import.meta.url), 'utf8'),
);

/** The member that the error names; `json` for a text that is no object. */
function wrongMember(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return error.errors[0]?.pointer.slice(1) ?? 'json';
  }
}

describe('the shared vectors', () => {
  test.each(vectors.messages)('$name', ({ text, message, error }) => {
    if (error !== undefined) return expect(wrongMember(() => deserializeMessage(text))).toBe(error);
    const read = deserializeMessage(text);
    expect(read).toEqual(message);
    expect(deserializeMessage(serializeMessage(read))).toEqual(message);
  });

  test.each(vectors.notices)('$name', ({ text, message, error }) => {
    if (error !== undefined) return expect(wrongMember(() => readChannelMessage(text))).toBe(error);
    expect(readChannelMessage(text)).toEqual(message);
  });
});

test('a created message has the present time', () => {
  const before = Date.now();
  const message = createToolMessage(ToolEventType.TOOL_COMPLETED, 'demo_id', { success: true });
  expect(message).toMatchObject({ type: 'TOOL_COMPLETED', toolId: 'demo_id', payload: { success: true } });
  expect(message.timestamp).toBeGreaterThanOrEqual(before);
  expect('payload' in createToolMessage('TOOL_ERROR', 'demo_id')).toBe(false);
});

test('a type of a newer gateway is skipped', () => {
  expect(readChannelMessage('{"type":"CHANNEL_LATER","timestamp":1}')).toBeUndefined();
});
