import { randomUUID } from 'node:crypto';
import { ToolgateClient } from '@toolgate/client';
import { signToken } from '../token.js';
import { myPlugin } from './my-plugin.js';

const SECONDS = 3600;

/**
 * The tutor's side of a lesson, as a plugin of the page's server: it holds the secret key, the page never sees it. `/session`
 * opens a lesson for the pupil, `/words` takes what the pupil says there and proposes the tool that is meant.
 */
export function lessons(client, { url, publicKey, jwtSecret }) {
  return {
    name: 'lessons',
    configureServer({ middlewares }) {
      middlewares.use(
        '/session',
        answer(async () => {
          // Each page is a pupil of its own: the token of one opens no lesson of another.
          const pupil = `allievo-${randomUUID()}`;
          const { id: spaceId } = await client.spaces.create({
            title: 'Lezione',
            agent: 'tutor',
            members: [pupil],
          });
          await client.tools.serve(spaceId, { tools: { [myPlugin.id]: myPlugin.handler } }).ready();
          const expires = Math.floor(Date.now() / 1000) + SECONDS;
          return { publicKey, spaceId, token: signToken({ sub: pupil, exp: expires }, jwtSecret) };
        }),
      );
      middlewares.use(
        '/words',
        answer(async ({ token, spaceId, text, topic }) => {
          // What follows has the tutor's key, so whoever asks for it must be in the lesson: the gateway knows.
          await new ToolgateClient({ url, publicKey, token }).spaces.get(spaceId);
          const [match] = await client.tools.match(text, {
            language: 'it',
            agent: 'tutor',
            context: { topic },
          });
          if (!match) return { tool: null };
          // It needs a yes, so this returns at once; the proposal reaches the pupil over the data channel.
          await client.tools.call(match.name, { agent: 'tutor', spaceId, arguments: { topic } });
          return { tool: match.name, trigger: match.trigger };
        }),
      );
    },
  };
}

/** The registry keeps the definition; the agent has the tool by its id, and was granted what it needs. */
export async function prepare(client) {
  await client.registry.replace(myPlugin);
  const { id, permissions } = myPlugin;
  await client.agents.put('tutor', { instructions: 'Sei un tutor.', tools: [id], grants: permissions });
}

/** A handler of a JSON request. */
function answer(handle) {
  return async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    response.setHeader('content-type', 'application/json');
    try {
      response.end(JSON.stringify(await handle(body === '' ? {} : JSON.parse(body))));
    } catch (error) {
      response.statusCode = error.status ?? 500;
      response.end(JSON.stringify({ detail: error.message }));
    }
  };
}
