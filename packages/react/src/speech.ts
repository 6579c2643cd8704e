/** How texts are spoken and words are heard. Either may be missing: a page without a microphone still matches typed words. */
export interface SpeechPorts {
  /** Says a text aloud. `onRefused` is called if the browser says nothing before somebody has used the page. */
  readonly speak?: (text: string, language: string | undefined, onRefused?: () => void) => void;
  /** Stops speaking. */
  readonly hush?: () => void;
  /** Listens for one utterance; the returned function stops. `onEnd` is called once, also after an error. */
  readonly listen?: (listener: SpeechListener, language: string | undefined) => () => void;
}

/** What becomes of an utterance. */
export interface SpeechListener {
  readonly onText: (text: string) => void;
  readonly onEnd: (error?: Error) => void;
}

/** The part of the browser's recognition that is used here; not every browser has it, and its types are not standard. */
interface Recognition {
  lang: string;
  interimResults: boolean;
  maxAlternatives: number;
  onresult: ((event: { results: ArrayLike<ArrayLike<{ transcript: string }>> }) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  abort(): void;
}

type SpeechWindow = typeof globalThis & {
  SpeechRecognition?: new () => Recognition;
  webkitSpeechRecognition?: new () => Recognition;
};

/** The browser's own speech, as far as it has any; nothing on a server. */
export function browserSpeech(scope: SpeechWindow = globalThis as SpeechWindow): SpeechPorts {
  const { speechSynthesis: voice, SpeechSynthesisUtterance: Utterance } = scope;
  const Recognition = scope.SpeechRecognition ?? scope.webkitSpeechRecognition;
  return {
    ...(voice && Utterance
      ? {
          speak: (text, language, onRefused) => {
            const utterance = new Utterance(text);
            if (language) utterance.lang = language;
            utterance.onerror = ({ error }) => {
              if (error === 'not-allowed') onRefused?.();
            };
            voice.speak(utterance);
          },
          hush: () => voice.cancel(),
        }
      : {}),
    ...(Recognition
      ? { listen: (listener, language) => listenWith(new Recognition(), listener, language) }
      : {}),
  };
}

/** Calls the listener once, when somebody uses the page, until the returned function is called. */
export function onNextGesture(listener: () => void): () => void {
  const page = globalThis.document;
  if (!page) return () => {};
  const stop = new AbortController();
  for (const gesture of ['click', 'keydown']) {
    page.addEventListener(
      gesture,
      () => {
        stop.abort();
        listener();
      },
      { capture: true, signal: stop.signal },
    );
  }
  return () => stop.abort();
}

function listenWith(recognition: Recognition, listener: SpeechListener, language?: string): () => void {
  let error: Error | undefined;
  if (language) recognition.lang = language;
  recognition.interimResults = false;
  recognition.maxAlternatives = 1;
  recognition.onresult = ({ results }) => {
    const heard = results[results.length - 1]?.[0]?.transcript.trim();
    if (heard) listener.onText(heard);
  };
  recognition.onerror = (event) => {
    // Silence and a stop by the page are no failures.
    if (event.error !== 'no-speech' && event.error !== 'aborted') error = new Error(event.error);
  };
  recognition.onend = () => listener.onEnd(error);
  recognition.start();
  return () => recognition.abort();
}
