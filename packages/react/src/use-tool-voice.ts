import { type DecisionWords, readDecision, ToolgateError, type wire } from '@toolgate/client';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useToolgateContext } from './context.js';
import type { Approval } from './message.js';
import { spaceStore } from './space-store.js';
import { browserSpeech, onNextGesture, type SpeechPorts } from './speech.js';
import { askedProposal, SpokenTexts } from './spoken-texts.js';
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
  /**
   * What a yes or a no does: sends the decision over HTTP by default. Give a function to send it another way, such as
   * `channel.accept`, or false to decide nothing.
   */
  readonly decide?: false | ((approvalId: string, approved: boolean) => Promise<unknown>);
  /** Words for yes and no, by language; `DECISION_WORDS` by default. */
  readonly decisionWords?: Readonly<Record<string, DecisionWords>>;
  /** Replaces the browser's speech. */
  readonly speech?: SpeechPorts;
}

/** What became of an utterance: a decision on the proposal, or the tools that it may mean. */
export type VoiceAnswer =
  | { readonly type: 'decision'; readonly approvalId: string; readonly approved: boolean }
  | { readonly type: 'matches'; readonly matches: readonly wire.ToolMatch[] };

/** Speaks what tools have said, and turns what a person says or types into a decision or the tool that is meant. */
export interface ToolVoice {
  /** Whether texts can be said aloud here. */
  readonly canSpeak: boolean;
  /** Whether this browser hears; without a microphone, `answer` and `find` take typed words. */
  readonly canListen: boolean;
  readonly isListening: boolean;
  /**
   * Whether the browser says nothing until somebody has used the page, which it refuses after each load. What is due then, such as
   * a proposal that still waits, is said after the next click or key.
   */
  readonly isMuted: boolean;
  /** The last words that were heard or typed. */
  readonly text: string | undefined;
  /** The tools that these words may mean, best first. */
  readonly matches: readonly wire.ToolMatch[];
  readonly error: Error | undefined;
  /**
   * The proposal that was asked aloud and waits for a yes or a no. Others wait until it is decided; those that this user may
   * not decide on are left out.
   */
  readonly proposal: Approval | undefined;
  /** The last decision by voice. */
  readonly decision: { readonly approvalId: string; readonly approved: boolean } | undefined;
  /** Listens for one utterance, then answers with it. */
  readonly listen: () => void;
  /** Stops listening and speaking. */
  readonly stop: () => void;
  /** Says a text aloud. */
  readonly say: (text: string) => void;
  /** Decides on the proposal if the words are a yes or a no; finds the tools that they may mean otherwise. */
  readonly answer: (text: string) => Promise<VoiceAnswer>;
  /** Finds the tools that words may mean. */
  readonly find: (text: string) => Promise<readonly wire.ToolMatch[]>;
}

/** Voice of the tools of a space. The gateway makes and matches texts and gets no audio; the browser's own speech may send it. */
export function useToolVoice(spaceId: string | undefined, options: ToolVoiceOptions = {}): ToolVoice {
  const { client } = useToolgateContext('useToolVoice');
  const { language, agent, context, speak = true, decide, decisionWords } = options;
  const speech = useMemo(() => options.speech ?? browserSpeech(), [options.speech]);
  const space = useSpace(spaceId);
  const [refused, setRefused] = useState<ReadonlySet<string>>(NONE);
  const proposal = useMemo(() => askedProposal(space, refused), [space, refused]);
  const [found, setFound] = useState<Found>(NOTHING);
  const [isListening, setListening] = useState(false);
  const [isMuted, setMuted] = useState(false);
  const stopListening = useRef<(() => void) | undefined>(undefined);
  const utterances = useRef(0);

  // One memory per space: another one begins in silence.
  const spoken = useMemo(() => ({ spaceId, texts: new SpokenTexts() }), [spaceId]);
  const [start, setStart] = useState<{ readonly of: typeof spoken; readonly seq: number }>();
  const since = start?.of === spoken ? start.seq : undefined;
  const hasFailed = space.connection === 'failed';
  useEffect(() => {
    if (spaceId === undefined || since !== undefined || hasFailed) return;
    const unmounted = new AbortController();
    const { signal } = unmounted;
    spaceStore(client, spaceId)
      .tail(signal)
      .then(
        (seq) => !signal.aborted && setStart({ of: spoken, seq }),
        (error: Error) => !signal.aborted && setFound((last) => ({ ...last, error })),
      );
    return () => unmounted.abort();
  }, [client, spaceId, spoken, since, hasFailed]);
  useEffect(() => {
    if (isMuted) return;
    for (const text of spoken.texts.next(space, proposal, since)) {
      if (!speak) continue;
      speech.speak?.(text, language, () => {
        spoken.texts.refused(text);
        setMuted(true);
      });
    }
  }, [spoken, space, proposal, since, speak, isMuted, speech, language]);
  useEffect(() => (isMuted ? onNextGesture(() => setMuted(false)) : undefined), [isMuted]);

  // What was said before must not overwrite what was said last.
  const begin = useCallback(() => {
    utterances.current += 1;
    const turn = utterances.current;
    return (next: Found): void => {
      if (turn === utterances.current) setFound(next);
    };
  }, []);

  const find = useCallback(
    async (text: string): Promise<readonly wire.ToolMatch[]> => {
      const keep = begin();
      try {
        const matches = await client.tools.match(text, {
          ...(language && { language }),
          ...(agent && { agent }),
          ...(context && { context }),
          ...(spaceId && { spaceId }),
        });
        keep({ ...NOTHING, text, matches });
        return matches;
      } catch (error) {
        keep({ ...NOTHING, text, error: error as Error });
        throw error;
      }
    },
    [begin, client, language, agent, context, spaceId],
  );

  const answerTo = useCallback(
    async (asked: Approval | undefined, text: string): Promise<VoiceAnswer> => {
      const read = { ...(language && { language }), ...(decisionWords && { words: decisionWords }) };
      const approved = asked && decide !== false ? readDecision(text, read) : undefined;
      if (!asked || approved === undefined) return { type: 'matches', matches: await find(text) };
      const decision = { approvalId: asked.id, approved };
      const keep = begin();
      try {
        await (decide ? decide(asked.id, approved) : client.approvals.decide(asked.id, { approved }));
        keep({ ...NOTHING, text, decision });
        return { type: 'decision', ...decision };
      } catch (error) {
        // It is for somebody else to decide: asking the same again would keep the next from being asked.
        if (error instanceof ToolgateError && error.status === 403) {
          setRefused((before) => new Set([...before, asked.id]));
        }
        keep({ ...NOTHING, text, error: error as Error });
        throw error;
      }
    },
    [begin, find, client, decide, decisionWords, language],
  );
  const answer = useCallback((text: string) => answerTo(proposal, text), [answerTo, proposal]);

  const listen = useCallback(() => {
    if (!speech.listen || stopListening.current) return;
    // It would hear itself.
    speech.hush?.();
    setListening(true);
    stopListening.current = speech.listen(
      {
        // About what was asked when the listening began: a yes must not reach a proposal that came in the meantime. The error
        // is in the hook's state.
        onText: (text) => void answerTo(proposal, text).catch(() => {}),
        onEnd: (error) => {
          stopListening.current = undefined;
          setListening(false);
          if (error) setFound((last) => ({ ...last, error }));
        },
      },
      language,
    );
  }, [speech, answerTo, proposal, language]);

  const stop = useCallback(() => {
    stopListening.current?.();
    speech.hush?.();
  }, [speech]);
  useEffect(() => stop, [stop]);

  const say = useCallback(
    (text: string) => speech.speak?.(text, language, () => setMuted(true)),
    [speech, language],
  );
  return useMemo(
    () => ({
      canSpeak: speech.speak !== undefined,
      canListen: speech.listen !== undefined,
      isListening,
      isMuted,
      proposal,
      ...found,
      listen,
      stop,
      say,
      answer,
      find,
    }),
    [speech, isListening, isMuted, proposal, found, listen, stop, say, answer, find],
  );
}

interface Found {
  readonly text: string | undefined;
  readonly matches: readonly wire.ToolMatch[];
  readonly error: Error | undefined;
  readonly decision: ToolVoice['decision'];
}

const NONE: ReadonlySet<string> = new Set();
const NOTHING: Found = { text: undefined, matches: [], error: undefined, decision: undefined };
