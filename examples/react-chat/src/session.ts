/** What the page may know: the public key, and a token for this visitor that the server signed. */
interface Session {
  publicKey: string;
  token: string;
  expiresAt: number;
}

const RENEW_MILLISECONDS_BEFORE = 60_000;

async function fetchSession(): Promise<Session> {
  const response = await fetch('/session');
  if (!response.ok) throw new Error(`no session: ${response.status}`);
  return response.json();
}

let session = await fetchSession();

export const publicKey = session.publicKey;

/** A token that is good for a while. */
export async function getToken(): Promise<string> {
  if (session.expiresAt - RENEW_MILLISECONDS_BEFORE < Date.now()) session = await fetchSession();
  return session.token;
}
