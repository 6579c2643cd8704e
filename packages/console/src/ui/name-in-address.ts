/** A name that stands in the address. One that no encoder has written is taken as it stands: then nothing is called so. */
export function nameInAddress(part: string | undefined): string | undefined {
  if (part === undefined) return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
