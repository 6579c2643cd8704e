const LANGUAGE = 'it-IT';
const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

/** Whether this browser hears. */
export const canListen = Recognition !== undefined;

/** Says a text aloud, if this browser has a voice. Resolves when it was said. */
export function speak(text) {
  const voice = globalThis.speechSynthesis;
  if (!voice) return Promise.resolve();
  return new Promise((resolve) => {
    const utterance = new SpeechSynthesisUtterance(text);
    utterance.lang = LANGUAGE;
    utterance.onend = resolve;
    utterance.onerror = resolve;
    voice.speak(utterance);
  });
}

/** Listens for one utterance. Resolves with its words, or with nothing. */
export function listen() {
  return new Promise((resolve) => {
    const recognition = new Recognition();
    let heard;
    recognition.lang = LANGUAGE;
    recognition.onresult = ({ results }) => {
      heard = results[results.length - 1]?.[0]?.transcript.trim();
    };
    recognition.onend = () => resolve(heard);
    recognition.start();
  });
}
