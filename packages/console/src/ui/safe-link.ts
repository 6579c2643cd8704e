/** The address if it is one of the web or of mail, and complete; otherwise nothing. */
export function safeLink(href: string): string | undefined {
  try {
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}
