import { type SpeechPorts, type ToolVoice, useToolgateChat, useToolVoice } from '@toolgate/react';
import { Mic, Volume2, VolumeX } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { Button, IconButton } from '../../ui/button.tsx';
import styles from './chat.module.css';
import { useVoiceSetting } from './use-voice-setting.ts';

export interface VoiceControlsProps {
  /** Takes words that decide nothing: they are for the message. */
  readonly onWords: (text: string) => void;
  /** Replaces the browser's speech. */
  readonly speech?: SpeechPorts;
}

/**
 * Turns voice on and off. While it is on, proposals and outputs of tools are said aloud, and a spoken yes or no decides on the
 * proposal. Nothing where the browser has no speech at all.
 */
export function VoiceControls({ onWords, speech }: VoiceControlsProps) {
  const { spaceId } = useToolgateChat();
  const [isOn, setOn] = useVoiceSetting();
  // Without a space the hook is silent: what waits when voice is turned on is said then.
  const voice = useToolVoice(isOn ? spaceId : undefined, {
    language: globalThis.navigator.language,
    ...(speech && { speech }),
  });
  useHeardWords(voice, onWords);
  if (!voice.canSpeak && !voice.canListen) return null;
  const { isListening } = voice;
  return (
    <>
      <Button
        size="small"
        variant="ghost"
        icon={isOn ? <Volume2 /> : <VolumeX />}
        aria-pressed={isOn}
        title="Says proposals and outputs of tools aloud, and takes a spoken yes or no"
        onClick={() => {
          voice.stop();
          setOn(!isOn);
        }}
      >
        <span className={styles.wideWord}>Voice {isOn ? 'on' : 'off'}</span>
      </Button>
      {isOn && voice.canListen && (
        <IconButton
          size="small"
          label="Listen"
          className={styles.listen}
          icon={<Mic />}
          aria-pressed={isListening}
          onClick={isListening ? voice.stop : voice.listen}
        />
      )}
      <span className={styles.voiceStatus} role="status">
        {isOn && statusOf(voice)}
      </span>
    </>
  );
}

/** What a person who cannot hear, or was not heard, reads. */
function statusOf({ isListening, error, decision, proposal, canListen }: ToolVoice): string {
  if (isListening) return proposal ? 'Listening for yes or no' : 'Listening';
  if (error) return error.message === 'not-allowed' ? 'The microphone is not allowed' : error.message;
  if (proposal) return canListen ? 'Say yes or no' : '';
  return decision ? `You said ${decision.approved ? 'yes' : 'no'}` : '';
}

/** Hands words over that decided nothing, each utterance once. */
function useHeardWords({ text, decision, matches, error }: ToolVoice, onWords: (text: string) => void): void {
  const handler = useRef(onWords);
  useEffect(() => {
    handler.current = onWords;
  });
  useEffect(() => {
    // Each utterance has its own list of matches, so that the same words twice are two.
    void matches;
    if (text !== undefined && !decision && !error) handler.current(text);
  }, [text, decision, matches, error]);
}
