/** One piece of words, or the news that those since the step's start are void. */
export type Words = { type: 'text' | 'reasoning'; value: string } | 'void';

/**
 * The words of one step. Deltas are told as they come; what a cut swallowed is made up for by the event that ends
 * the part, which holds all of it; and when a model was asked again, what it had said before is declared void.
 */
export class StreamedWords {
  /** What was told so far, by part, in order. */
  #parts = new Map<string, { type: 'text' | 'reasoning'; told: string }>();

  /** A new step: nothing was said. */
  reset(): void {
    this.#parts.clear();
  }

  /** A part begins. One that had begun already begins anew. */
  start(type: 'text' | 'reasoning', id: string): Words[] {
    const again = this.#parts.get(id)?.told !== undefined && this.#parts.get(id)?.told !== '';
    if (again) this.#parts.clear();
    this.#parts.set(id, { type, told: '' });
    return again ? ['void'] : [];
  }

  delta(type: 'text' | 'reasoning', id: string, delta: string): Words[] {
    const part = this.#parts.get(id) ?? { type, told: '' };
    part.told += delta;
    this.#parts.set(id, part);
    return [{ type, value: delta }];
  }

  /** A part is whole. */
  end(type: 'text' | 'reasoning', id: string, whole: string): Words[] {
    const told = this.#parts.get(id)?.told ?? '';
    this.#parts.set(id, { type, told: whole });
    if (whole === told) return [];
    if (whole.startsWith(told)) return [{ type, value: whole.slice(told.length) }];
    // Said differently the second time. Parts that were told before this one are told again.
    const again = [...this.#parts.values()].filter((part) => part.told !== '');
    return ['void', ...again.map((part): Words => ({ type: part.type, value: part.told }))];
  }
}
