/** A piece of text or reasoning, or `void`: discard everything since the step's start. */
export type TextPiece = { type: 'text' | 'reasoning'; value: string } | 'void';

/**
 * The text and reasoning of one step, each piece once. Deltas are returned as they arrive. Text that a
 * disconnect lost is in the event that ends the part, which contains all of it. When the model is asked
 * again, the earlier text is declared void.
 */
export class StreamedText {
  /** Text returned so far, by part, in order. */
  #parts = new Map<string, { type: 'text' | 'reasoning'; returned: string }>();

  /** Begins a step. */
  reset(): void {
    this.#parts.clear();
  }

  /** Begins a part. If the part had begun already, it starts over. */
  start(type: 'text' | 'reasoning', id: string): TextPiece[] {
    const again = this.#parts.get(id)?.returned !== undefined && this.#parts.get(id)?.returned !== '';
    if (again) this.#parts.clear();
    this.#parts.set(id, { type, returned: '' });
    return again ? ['void'] : [];
  }

  delta(type: 'text' | 'reasoning', id: string, delta: string): TextPiece[] {
    const part = this.#parts.get(id) ?? { type, returned: '' };
    part.returned += delta;
    this.#parts.set(id, part);
    return [{ type, value: delta }];
  }

  /** Completes a part. */
  end(type: 'text' | 'reasoning', id: string, whole: string): TextPiece[] {
    const returned = this.#parts.get(id)?.returned ?? '';
    this.#parts.set(id, { type, returned: whole });
    if (whole === returned) return [];
    if (whole.startsWith(returned)) return [{ type, value: whole.slice(returned.length) }];
    // The text differs from what was returned: void everything, and return all parts again.
    const again = [...this.#parts.values()].filter((part) => part.returned !== '');
    return ['void', ...again.map((part): TextPiece => ({ type: part.type, value: part.returned }))];
  }
}
