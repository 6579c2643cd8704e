// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { ToolgateClient } from '@toolgate/client';
import { type SpeechPorts, ToolgateChatProvider } from '@toolgate/react';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { VoiceControls } from './voice-controls.tsx';

beforeEach(() => localStorage.clear());
afterEach(cleanup);

const client = new ToolgateClient({
  url: 'http://127.0.0.1:1',
  fetch: async () => Response.json({ matches: [] }),
});

function show(speech: SpeechPorts, words: string[] = []) {
  return render(
    <ToolgateChatProvider client={client}>
      <VoiceControls speech={speech} onWords={(text) => words.push(text)} />
    </ToolgateChatProvider>,
  );
}

const toggle = (): HTMLElement => screen.getByRole('button', { name: /^Voice/ });

test('where the browser has no speech there is nothing to turn on', () => {
  show({});
  expect(screen.queryByRole('button')).toBeNull();
});

test('voice is off until somebody turns it on, and the browser remembers', () => {
  const speech: SpeechPorts = { speak: () => {}, listen: () => () => {} };
  const shown = show(speech);
  expect(toggle().getAttribute('aria-pressed')).toBe('false');
  expect(screen.queryByRole('button', { name: 'Listen' })).toBeNull();
  fireEvent.click(toggle());
  expect(toggle().getAttribute('aria-pressed')).toBe('true');
  screen.getByRole('button', { name: 'Listen' });
  shown.unmount();
  show(speech);
  expect(toggle().getAttribute('aria-pressed')).toBe('true');
  fireEvent.click(toggle());
  expect(localStorage.length).toBe(0);
});

test('a browser that only speaks has no microphone to press', () => {
  show({ speak: () => {} });
  fireEvent.click(toggle());
  expect(screen.queryByRole('button', { name: 'Listen' })).toBeNull();
});

test('words that decide nothing are for the message, also the same ones again', async () => {
  let listener: Parameters<NonNullable<SpeechPorts['listen']>>[0] | undefined;
  const listen: NonNullable<SpeechPorts['listen']> = (given) => {
    listener = given;
    return () => given.onEnd();
  };
  const words: string[] = [];
  show({ listen }, words);
  fireEvent.click(toggle());
  for (const count of [1, 2]) {
    fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
    expect((await screen.findByRole('status')).textContent).toBe('Listening');
    screen.getByRole('button', { name: 'Listen', pressed: true });
    listener?.onText('crea un foglio');
    listener?.onEnd();
    await waitFor(() => expect(words).toHaveLength(count));
  }
  expect(words).toEqual(['crea un foglio', 'crea un foglio']);
  fireEvent.click(screen.getByRole('button', { name: 'Listen' }));
  listener?.onEnd(new Error('not-allowed'));
  await screen.findByText('The microphone is not allowed');
});
