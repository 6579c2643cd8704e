// Compiled, never run: the types know what the sandbox has, and nothing that it has not.

export async function execute(args: { city: string }): Promise<unknown> {
  const url = new URL('https://api.example.com/weather');
  url.searchParams.set('city', args.city);
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(1000),
  });
  if (!response.ok) throw new Error(`the weather is not known: ${response.status}`);
  const asked = Number((await storage.get('asked')) ?? 0) + 1;
  await storage.set('asked', asked);
  console.info('asked', asked, await storage.list('a'));
  const bytes = crypto.getRandomValues(new Uint8Array(4));
  const timer = setTimeout(() => queueMicrotask(() => {}), 10);
  clearTimeout(timer);
  const at = new Intl.DateTimeFormat('en-US', { timeZone: 'Europe/Paris' }).format(new Date());
  const text = new TextDecoder().decode(new TextEncoder().encode(btoa(atob('AAAA'))));
  return {
    weather: structuredClone(await response.json()),
    id: crypto.randomUUID(),
    bytes: [...bytes],
    at,
    text,
  };
}

// @ts-expect-error there is no page.
export const page = (): unknown => document;
// @ts-expect-error there is no process.
export const environment = (): unknown => process.env;
// @ts-expect-error and no storage of a browser.
export const kept = (): unknown => localStorage;
