import { expect, test } from 'vitest';
import { ToolgateClient } from './client.js';
import { AccessError } from './error.js';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
}

/** A client of a gateway that answers with what `answers` says, and what was sent to it. */
function world(answers: Record<string, () => Response>) {
  const sent: Sent[] = [];
  const client = new ToolgateClient({
    url: 'http://gateway',
    fetch: async (input, init) => {
      const path = new URL(String(input)).pathname;
      const method = init?.method ?? 'GET';
      sent.push({ method, path, headers: new Headers(init?.headers) });
      return answers[`${method} ${path}`]?.() ?? Response.json({});
    },
  });
  return { client, sent };
}

const SESSION = {
  kind: 'session',
  id: 'sess_1',
  project: { id: 'proj_1', name: 'default' },
  operator: false,
};

test('the token of a session goes with changes, and with nothing else', async () => {
  const { client, sent } = world({
    'POST /v1/sessions': () => Response.json({ ...SESSION, csrfToken: 'token-1' }, { status: 201 }),
    'GET /v1/keys': () => Response.json({ keys: [] }),
  });
  await client.sessions.signIn('code-1');
  await client.keys.list();
  await client.runs.cancel('run_1');
  await client.sessions.signOut();
  await client.runs.cancel('run_1');
  expect(sent.map(({ method, headers }) => [method, headers.get('x-toolgate-csrf')])).toEqual([
    ['POST', null],
    ['GET', null],
    ['POST', 'token-1'],
    ['DELETE', 'token-1'],
    ['POST', null],
  ]);
});

test('a rejected code is an error with the id of the request', async () => {
  const problem = { type: 'about:blank', title: '', status: 401, code: 'LOGIN_CODE_INVALID', detail: 'used' };
  const { client } = world({
    'POST /v1/sessions': () => Response.json(problem, { status: 401, headers: { 'x-request-id': 'req-1' } }),
  });
  const error = await client.sessions.signIn('old').catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AccessError);
  expect(error).toMatchObject({ code: 'LOGIN_CODE_INVALID', requestId: 'req-1' });
});
