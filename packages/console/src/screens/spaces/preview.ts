/** Files that are larger are downloaded, not shown. */
const PREVIEW_BYTES_MAX = 2 * 1024 * 1024;
/** Images that cannot carry script; SVG is shown as text. */
const IMAGES = /^image\/(png|jpeg|gif|webp|avif)$/;

/** How a file is shown. */
export function previewOf(file: {
  readonly mimeType: string;
  readonly bytes: number;
}): 'image' | 'markdown' | 'text' | 'none' {
  const type = file.mimeType.split(';')[0]?.trim() ?? '';
  if (file.bytes > PREVIEW_BYTES_MAX) return 'none';
  if (IMAGES.test(type)) return 'image';
  if (type === 'text/markdown') return 'markdown';
  return /^text\/|json|xml|yaml|javascript/.test(type) ? 'text' : 'none';
}
