import { signToken } from '../token.js';

const SECONDS = 3600;

/**
 * Answers `/session` with what the page may know: the public key, and a token that says who the visitor is. This is the
 * part that your own backend plays, after it has checked who is there.
 */
export function sessions({ publicKey, jwtSecret }) {
  return {
    name: 'sessions',
    configureServer(server) {
      server.middlewares.use('/session', (_request, response) => {
        const expires = Math.floor(Date.now() / 1000) + SECONDS;
        const token = signToken({ sub: 'visitor', exp: expires }, jwtSecret);
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ publicKey, token, expiresAt: expires * 1000 }));
      });
    },
  };
}
