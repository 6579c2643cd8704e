/** A random id. `crypto.randomUUID` exists only on pages that are served by HTTPS or from localhost. */
export function freshId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
