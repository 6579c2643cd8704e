import { expect, test, vi } from 'vitest';
import { browserSpeech } from './speech.js';

test('a page without speech has none, and does not fail', () => {
  expect(browserSpeech({} as never)).toEqual({});
});

test('one utterance is heard, and a real error is told', () => {
  const made: Array<Record<string, unknown> & { lang?: string }> = [];
  class Recognition {
    start = vi.fn();
    abort = vi.fn();
    constructor() {
      made.push(this as never);
    }
  }
  const speech = browserSpeech({ webkitSpeechRecognition: Recognition } as never);
  const listener = { onText: vi.fn(), onEnd: vi.fn() };
  const stop = speech.listen?.(listener, 'it-IT');
  const [recognition] = made as unknown as Array<{
    lang: string;
    onresult(event: unknown): void;
    onerror(event: unknown): void;
    onend(): void;
    abort(): void;
  }>;
  expect(recognition?.lang).toBe('it-IT');
  recognition?.onresult({ results: [[{ transcript: ' mostra demo ' }]] });
  expect(listener.onText).toHaveBeenCalledWith('mostra demo');
  recognition?.onerror({ error: 'no-speech' });
  recognition?.onend();
  expect(listener.onEnd).toHaveBeenLastCalledWith(undefined);
  recognition?.onerror({ error: 'not-allowed' });
  recognition?.onend();
  expect(listener.onEnd).toHaveBeenLastCalledWith(new Error('not-allowed'));
  stop?.();
  expect(recognition?.abort).toHaveBeenCalled();
});

test('texts are spoken in their language', () => {
  const said: unknown[] = [];
  class SpeechSynthesisUtterance {
    lang = '';
    readonly text: string;
    constructor(text: string) {
      this.text = text;
    }
  }
  const speechSynthesis = { speak: (one: unknown) => said.push(one), cancel: vi.fn() };
  const speech = browserSpeech({ speechSynthesis, SpeechSynthesisUtterance } as never);
  speech.speak?.('Creare un nuovo foglio?', 'it-IT');
  expect(said).toMatchObject([{ text: 'Creare un nuovo foglio?', lang: 'it-IT' }]);
  speech.hush?.();
  expect(speechSynthesis.cancel).toHaveBeenCalled();
  const onRefused = vi.fn();
  speech.speak?.('Creare un foglio?', 'it-IT', onRefused);
  const [, utterance] = said as Array<{ onerror(event: { error: string }): void }>;
  utterance?.onerror({ error: 'interrupted' });
  expect(onRefused).not.toHaveBeenCalled();
  utterance?.onerror({ error: 'not-allowed' });
  expect(onRefused).toHaveBeenCalledOnce();
});
