/** The content of a file or a document; a string is sent as UTF-8. */
export type Content = string | Uint8Array | ArrayBuffer | Blob;

/** The content's bytes. */
export async function bytesOf(content: Content): Promise<Uint8Array<ArrayBuffer>> {
  if (typeof content === 'string') return new TextEncoder().encode(content);
  if (content instanceof Blob) return new Uint8Array(await content.arrayBuffer());
  return new Uint8Array(content);
}
