import type { wire } from '@toolgate/client';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useToolgateContext } from './context.js';
import { browserSpeech, type SpeechPorts } from './speech.js';
import { SpokenTexts } from './spoken-texts.js';
import { useSpace } from './use-space.js';

export type { SpeechPorts } from './speech.js';

/** Options of `useToolVoice`. */
export interface ToolVoiceOptions {
  /** The language of speech and of the match, such as `it-IT`; the browser's and every known one by default. */
  readonly language?: string;
  /** Tools of this agent only. */
  readonly agent?: string;
  /** What the conversation is about, such as `{ topic: 'Gravità' }`. */
  readonly context?: Record<string, unknown>;
  /** Whether proposals and completions of the space are said aloud; true by default. */
  readonly speak?: boolean;
  /** Replaces the browser's speech. */
  readonly speech?: SpeechPorts;
}

/** Speaks what tools have said, and finds the tool that is meant by what a person says or types. */
export interface ToolVoice {
  /** Whether texts can be said aloud here. */
  readonly canSpeak: boolean;
  /** Whether this browser hears; without a microphone, `find` takes typed words. */
  readonly canListen: boolean;
  readonly isListening: boolean;
  /** The last words that were heard or typed. */
  readonly text: string | undefined;
  /** The tools that these words may mean, best first. */
  readonly matches: readonly wire.ToolMatch[];
  readonly error: Error | undefined;
  /** Listens for one utterance, then finds its tools. */
  readonly listen: () => void;
  /** Stops listening and speaking. */
  readonly stop: () => void;
  /** Says a text aloud. */
  readonly say: (text: string) => void;
  /** Finds the tools that words may mean. */
  readonly find: (text: string) => Promise<readonly wire.ToolMatch[]>;
}

/** Voice of the tools of a space. No audio leaves the page: the gateway makes and matches texts. */
export function useToolVoice(spaceId: string | undefined, options: ToolVoiceOptions = {}): ToolVoice {
  const { client } = useToolgateContext('useToolVoice');
  const { language, agent, context, speak = true } = options;
  const speech = useMemo(() => options.speech ?? browserSpeech(), [options.speech]);
  const space = useSpace(spaceId);
  const [found, setFound] = useState<Found>(NOTHING);
  const [isListening, setListening] = useState(false);
  const stopListening = useRef<(() => void) | undefined>(undefined);
  const asked = useRef(0);

  // One memory per space: another one begins in silence.
  const spoken = useMemo(() => ({ spaceId, texts: new SpokenTexts() }), [spaceId]);
  useEffect(() => {
    for (const text of spoken.texts.next(space)) if (speak) speech.speak?.(text, language);
  }, [spoken, space, speak, speech, language]);

  const find = useCallback(
    async (text: string): Promise<readonly wire.ToolMatch[]> => {
      asked.current += 1;
      const turn = asked.current;
      // What was asked before must not overwrite what was asked last.
      const keep = (next: Found): void => {
        if (turn === asked.current) setFound(next);
      };
      try {
        const matches = await client.tools.match(text, {
          ...(language && { language }),
          ...(agent && { agent }),
          ...(context && { context }),
          ...(spaceId && { spaceId }),
        });
        keep({ text, matches, error: undefined });
        return matches;
      } catch (error) {
        keep({ text, matches: [], error: error as Error });
        throw error;
      }
    },
    [client, language, agent, context, spaceId],
  );

  const listen = useCallback(() => {
    if (!speech.listen || stopListening.current) return;
    // It would hear itself.
    speech.hush?.();
    setListening(true);
    stopListening.current = speech.listen(
      {
        // The error is in the hook's state.
        onText: (text) => void find(text).catch(() => {}),
        onEnd: (error) => {
          stopListening.current = undefined;
          setListening(false);
          if (error) setFound((last) => ({ ...last, error }));
        },
      },
      language,
    );
  }, [speech, find, language]);

  const stop = useCallback(() => {
    stopListening.current?.();
    speech.hush?.();
  }, [speech]);
  useEffect(() => stop, [stop]);

  const say = useCallback((text: string) => speech.speak?.(text, language), [speech, language]);
  return useMemo(
    () => ({
      canSpeak: speech.speak !== undefined,
      canListen: speech.listen !== undefined,
      isListening,
      ...found,
      listen,
      stop,
      say,
      find,
    }),
    [speech, isListening, found, listen, stop, say, find],
  );
}

interface Found {
  readonly text: string | undefined;
  readonly matches: readonly wire.ToolMatch[];
  readonly error: Error | undefined;
}

const NOTHING: Found = { text: undefined, matches: [], error: undefined };
