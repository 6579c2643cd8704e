import { createHash, randomUUID } from 'node:crypto';
import { signToken } from '../token.js';

const SECONDS = 3600;
const COOKIE = /(?:^|; *)session=([\w-]+)/;

/** Plays your backend, in front of the proxy: says to the gateway who is asking. No key of it reaches the browser. */
export function backend({ publicKey, jwtSecret }) {
  return {
    name: 'backend',
    configureServer({ middlewares }) {
      middlewares.use('/api', (request, response, next) => {
        const claims = { sub: visitorOf(request, response), exp: Math.floor(Date.now() / 1000) + SECONDS };
        request.headers['x-public-key'] = publicKey;
        request.headers.authorization = `Bearer ${signToken(claims, jwtSecret)}`;
        next();
      });
    },
  };
}

/** Who is there: by a cookie here, by your login in an app. */
function visitorOf(request, response) {
  const known = COOKIE.exec(request.headers.cookie ?? '')?.[1];
  const session = known ?? randomUUID();
  if (!known) response.setHeader('set-cookie', `session=${session}; Path=/; HttpOnly; SameSite=Strict`);
  // A name is seen by others; the cookie, which opens this visitor's chats, is not.
  return createHash('sha256').update(session).digest('hex');
}
