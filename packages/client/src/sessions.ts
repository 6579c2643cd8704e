import type { Connection } from './connection.js';
import type { Session, SessionList } from './operator-wire.js';
import type { CallOptions } from './resources.js';

/** A browser's session with the gateway: a cookie that scripts cannot read, and a token against CSRF. */
export class Sessions {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Who is asking: a session, a key, or anybody where the gateway runs without authentication. */
  current(options: CallOptions = {}): Promise<Session> {
    return this.#begin(this.#connection.json('/v1/session', options));
  }

  /** Exchanges the code of a login link for a session. A code counts once. */
  signIn(code: string, options: CallOptions = {}): Promise<Session> {
    const body = { code };
    return this.#begin(this.#connection.json('/v1/sessions', { ...options, method: 'POST', body }));
  }

  /** Ends this session. */
  async signOut(options: CallOptions = {}): Promise<void> {
    await this.#connection.json('/v1/session', { ...options, method: 'DELETE', safe: true });
    this.#connection.useCsrfToken(undefined);
  }

  /** The sessions of the project. */
  async list(options: CallOptions = {}): Promise<SessionList['sessions']> {
    return (await this.#connection.json<SessionList>('/v1/sessions', options)).sessions;
  }

  /** Ends one session of the project. */
  end(sessionId: string, options: CallOptions = {}): Promise<void> {
    const path = `/v1/sessions/${encodeURIComponent(sessionId)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE', safe: true });
  }

  /** Ends all sessions of the project, this one too. */
  endAll(options: CallOptions = {}): Promise<void> {
    return this.#connection.json('/v1/sessions', { ...options, method: 'DELETE', safe: true });
  }

  async #begin(answer: Promise<Session>): Promise<Session> {
    const session = await answer;
    this.#connection.useCsrfToken(session.csrfToken ?? undefined);
    return session;
  }
}
