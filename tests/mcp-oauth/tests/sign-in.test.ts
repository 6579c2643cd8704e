import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Gateway, gatewayBinary, startGateway } from '@toolgate/test-support';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type AuthorizationServer, MACHINE, startAuthorizationServer } from '../src/authorization-server.ts';
import { Browser } from '../src/person.ts';
import { startProtectedServer } from '../src/protected-server.ts';

let authorization: AuthorizationServer;
let server: Awaited<ReturnType<typeof startProtectedServer>>;
let gateway: Gateway;
let names = 0;
let name: string;

beforeAll(async () => {
  authorization = await startAuthorizationServer();
  server = await startProtectedServer(authorization);
  gateway = await startGateway({ config: '[outside]\nallow = ["127.0.0.1"]\n[log]\nlevel = "debug"\n' });
});

afterAll(async () => {
  await gateway?.stop();
  await server?.stop();
  await authorization?.stop();
});

beforeEach(() => {
  names += 1;
  name = `server${names}`;
});

/** What the gateway answers, as far as these tests look at it. */
interface Answer {
  status?: string;
  reason?: string;
  needsSignIn?: boolean;
  config?: { auth?: { clientSecret?: string } };
  authorizeUrl?: string;
  expiresAt?: string;
  errors?: Array<{ pointer: string }>;
}

async function send(method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer }> {
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.secretKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

const callback = () => `${gateway.url}/v1/mcp/oauth/callback`;
const status = async () => (await send('GET', `/v1/mcp/servers/${name}`)).body;
const call = () =>
  send('POST', `/v1/tools/mcp_${name}_whoami/call`, { arguments: {} }).then(({ body }) =>
    JSON.stringify(body),
  );

/** Adds the server and lets a person sign in; gives the address that the browser comes back to. */
async function begin(person: string): Promise<string> {
  expect((await send('PUT', `/v1/mcp/servers/${name}`, { url: server.url })).status).toBe(200);
  const tested = await send('POST', `/v1/mcp/servers/${name}/test`);
  expect(tested.body).toMatchObject({ status: 'failed', needsSignIn: true });
  expect(tested.body.reason).toContain('sign in');
  const begun = await send('POST', `/v1/mcp/servers/${name}/authorize`);
  expect(begun.status, JSON.stringify(begun.body)).toBe(200);
  expect(Date.parse(begun.body.expiresAt ?? '')).toBeGreaterThan(Date.now());
  const back = await new Browser().signIn(begun.body.authorizeUrl ?? '', person, callback());
  expect(back).toContain(callback());
  return back;
}

async function finish(address: string): Promise<{ status: number; text: string }> {
  const response = await fetch(address);
  return { status: response.status, text: await response.text() };
}

/** A person signs in, and the server is connected. */
async function signIn(person: string): Promise<void> {
  const page = await finish(await begin(person));
  expect(page).toMatchObject({ status: 200 });
  expect(page.text).toContain('You may close this window');
  await expect.poll(status).toMatchObject({ status: 'ready', needsSignIn: false });
}

describe('a person signs in', () => {
  test('and the tools of the server can be called, also after a crash', async () => {
    await signIn('ada');
    expect(await call()).toContain('signed in as ada');
    await gateway.restart();
    expect(await call()).toContain('signed in as ada');
  });

  test('at the command line', async () => {
    await send('PUT', `/v1/mcp/servers/${name}`, { url: server.url });
    const command = [
      'mcp',
      'servers',
      'login',
      name,
      '--url',
      gateway.url,
      '--secret-key',
      gateway.secretKey,
    ];
    const login = spawn(gatewayBinary(), command, { stdio: ['ignore', 'pipe', 'inherit'] });
    let told = '';
    login.stdout.on('data', (piece: Buffer) => {
      told += piece;
    });
    const ended = once(login, 'exit');
    await expect.poll(() => told).toMatch(/https?:\/\/\S+\n/);
    const address = /https?:\/\/\S+/.exec(told)?.[0] ?? '';
    await finish(await new Browser().signIn(address, 'alonzo', callback()));
    expect(await ended).toEqual([0, null]);
    expect(told).toContain(`${name}  ready  1 tools`);
  });

  test('and a token that has ended is renewed without anybody', async () => {
    await signIn('grace');
    await authorization.expire();
    const before = authorization.grants.length;
    expect(await call()).toContain('signed in as grace');
    expect(authorization.grants.slice(before)).toEqual(['refresh_token']);
  });

  test('for every server by itself', async () => {
    await signIn('alan');
    const other = name;
    names += 1;
    name = `server${names}`;
    await signIn('barbara');
    expect(await call()).toContain('signed in as barbara');
    name = other;
    expect(await call()).toContain('signed in as alan');
  });

  test('and nothing of it stands in the clear on the disk or in the log', async () => {
    await signIn('edsger');
    await call();
    expect(authorization.issued.length).toBeGreaterThan(2);
    const files = (await readdir(gateway.data, { recursive: true })).map((file) => join(gateway.data, file));
    const found: string[] = [];
    let bytes = 0;
    for (const file of files) {
      if (!(await stat(file)).isFile()) continue;
      const content = await readFile(file);
      bytes += content.length;
      found.push(
        ...authorization.issued
          .filter((secret) => content.includes(secret))
          .map((secret) => `${file}: ${secret}`),
      );
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(found).toEqual([]);
    expect(authorization.issued.filter((secret) => gateway.logs().includes(secret))).toEqual([]);
    const key = files.find((file) => file.endsWith('mcp.key'));
    expect((await stat(key ?? 'mcp.key is missing')).mode & 0o777).toBe(0o600);
  });

  test('and signs in again after the server was removed and added', async () => {
    await signIn('kurt');
    expect((await send('DELETE', `/v1/mcp/servers/${name}`)).status).toBe(204);
    await begin('kurt');
  });
});

describe('a browser that comes back', () => {
  test('from another authorization server is refused, and the right one still counts', async () => {
    const back = new URL(await begin('ada'));
    const forged = new URL(back);
    forged.searchParams.set('iss', 'http://127.0.0.1:1');
    const refused = await finish(forged.href);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('not the one that it should be');
    const missing = new URL(back);
    missing.searchParams.delete('iss');
    expect((await finish(missing.href)).status).toBe(400);
    expect((await finish(back.href)).status).toBe(200);
  });

  test('counts once', async () => {
    const back = await begin('ada');
    expect((await finish(back)).status).toBe(200);
    const again = await finish(back);
    expect(again.status).toBe(400);
    expect(again.text).toContain('finished already');
  });

  test('with a state of its own making is refused', async () => {
    const back = new URL(await begin('ada'));
    const state = back.searchParams.get('state') ?? '';
    back.searchParams.set('state', `${state.slice(0, -2)}AA`);
    expect((await finish(back.href)).status).toBe(400);
    expect((await finish(callback())).status).toBe(400);
  });

  test('with a refusal ends the sign-in, and its words are no markup', async () => {
    const back = new URL(await begin('ada'));
    const refusal = new URL(callback());
    refusal.searchParams.set('state', back.searchParams.get('state') ?? '');
    refusal.searchParams.set('error', '<script>alert(1)</script>');
    const refused = await finish(refusal.href);
    expect(refused.status).toBe(400);
    expect(refused.text).not.toContain('<script>');
    expect((await finish(back.href)).status).toBe(400);
  });
});

describe('the gateway itself', () => {
  const auth = {
    type: 'oauth',
    flow: 'client-credentials',
    clientId: MACHINE.id,
    clientSecret: MACHINE.secret,
  };

  test('signs in by its own credentials, and again when the token has ended', async () => {
    await send('PUT', `/v1/mcp/servers/${name}`, { url: server.url, auth });
    const tested = await send('POST', `/v1/mcp/servers/${name}/test`);
    expect(tested.body).toMatchObject({ status: 'ready', needsSignIn: false });
    expect(tested.body.config?.auth?.clientSecret).toBe('***');
    expect(await call()).toContain(`signed in as ${MACHINE.id}`);
    await authorization.expire();
    expect(await call()).toContain(`signed in as ${MACHINE.id}`);
  });

  test('says so when its secret is wrong', async () => {
    await send('PUT', `/v1/mcp/servers/${name}`, {
      url: server.url,
      auth: { ...auth, clientSecret: 'another' },
    });
    const tested = await send('POST', `/v1/mcp/servers/${name}/test`);
    expect(tested.body).toMatchObject({ status: 'failed', needsSignIn: false });
    expect(tested.body.reason).toContain('refuses the client');
    expect(tested.body.reason).not.toContain('another');
  });

  test('does not follow an address that it may not reach', async () => {
    const guarded = await startGateway();
    try {
      const response = await fetch(`${guarded.url}/v1/mcp/servers/inside`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${guarded.secretKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ url: server.url }),
      });
      expect(response.status).toBe(422);
    } finally {
      await guarded.stop();
    }
  });

  test('says which settings are wrong', async () => {
    const refused = await send('PUT', `/v1/mcp/servers/${name}`, {
      url: server.url,
      auth: { type: 'oauth', flow: 'client-credentials', scopes: 'tools' },
    });
    expect(refused.status).toBe(422);
    expect(refused.body.errors?.map(({ pointer }) => pointer)).toEqual(
      expect.arrayContaining(['/auth', '/auth/scopes']),
    );
  });
});
