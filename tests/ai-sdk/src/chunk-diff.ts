/** A chunk of a UI message stream. */
export type Chunk = { type: string; [member: string]: unknown };

const DELTAS: Record<string, string> = { 'text-delta': 'delta', 'reasoning-delta': 'delta' };
/** Members that name a thing, with the word for it; what they name is compared, not how. */
const NAMES: Record<string, string> = { messageId: 'message', toolCallId: 'call', approvalId: 'approval' };

/**
 * The chunks of a conversation's responses as lines that compare. Things are numbered in the order in which they appear;
 * a text or a `data-` part is one from its first chunk on, since `streamText` uses the ids of texts again. Text that came
 * in several deltas is one, because how a model's words are cut is a matter of time.
 */
export function comparable(responses: Chunk[][]): string[] {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  const nameOf = (kind: string, id: string, isNew: boolean): string => {
    const known = names.get(`${kind} ${id}`);
    if (known && !isNew) return known;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    names.set(`${kind} ${id}`, `${kind}${count}`);
    return `${kind}${count}`;
  };
  return responses.flatMap((chunks, index) => [
    `response ${index + 1}`,
    ...joined(chunks).map(({ type, ...members }) => {
      const part = type.startsWith('data-') ? 'step' : type.split('-')[0];
      const shown = Object.entries(members).map(([member, value]) => {
        const kind = member === 'id' ? part : NAMES[member];
        return [member, kind ? nameOf(kind, String(value), type === `${kind}-start`) : value];
      });
      return shown.length > 0 ? `${type} ${JSON.stringify(Object.fromEntries(shown))}` : type;
    }),
  ]);
}

function joined(chunks: Chunk[]): Chunk[] {
  const out: Chunk[] = [];
  for (const chunk of chunks) {
    const [last, member] = [out.at(-1), DELTAS[chunk.type]];
    if (member && last?.type === chunk.type && last.id === chunk.id) {
      out[out.length - 1] = { ...chunk, [member]: `${last[member]}${chunk[member]}` };
    } else out.push(chunk);
  }
  return out;
}

/** What has to be taken out of `theirs` (`- …`) and put in (`+ …`) to get `ours`, in order: a shortest such list. */
export function difference(theirs: string[], ours: string[]): string[] {
  // Lengths of the longest common rest, from every pair of places on.
  const rest = Array.from({ length: theirs.length + 1 }, () => new Array<number>(ours.length + 1).fill(0));
  const at = (i: number, j: number): number => rest[i]?.[j] ?? 0;
  for (let i = theirs.length - 1; i >= 0; i -= 1) {
    for (let j = ours.length - 1; j >= 0; j -= 1) {
      (rest[i] as number[])[j] =
        theirs[i] === ours[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < theirs.length || j < ours.length) {
    if (i < theirs.length && j < ours.length && theirs[i] === ours[j]) {
      i += 1;
      j += 1;
    } else if (i < theirs.length && (j >= ours.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(`- ${theirs[i]}`);
      i += 1;
    } else {
      lines.push(`+ ${ours[j]}`);
      j += 1;
    }
  }
  return lines;
}
