/** Characters that reorder the text around them, and could make a text read as another one. */
const BIDI_CONTROLS = /[\u202A-\u202E\u2066-\u2069]/g;

/** The text with characters that reorder their surroundings written out, such as `[U+202E]`. */
export function showControls(text: string): string {
  return text.replace(BIDI_CONTROLS, (found) => `[U+${found.charCodeAt(0).toString(16).toUpperCase()}]`);
}

/** The same for whatever is drawn: a text is written out, an element has seen to it itself. */
export function showControlsIn<Drawn>(drawn: Drawn): Drawn | string {
  return typeof drawn === 'string' ? showControls(drawn) : drawn;
}
