import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ValidationError } from './error.js';

// The default registry is one per process: each test has its own.
let sdk: typeof import('./index.js');
beforeEach(async () => {
  vi.resetModules();
  sdk = await import('./index.js');
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

function environment(url: string, key: string): void {
  vi.stubEnv('TOOLGATE_URL', url);
  vi.stubEnv('TOOLGATE_SECRET_KEY', key);
}

test('the environment names the gateway of the default registry', async () => {
  environment('http://127.0.0.1:1', 'sk_test');
  const fetch = vi.fn(async () => Response.json({ sharedTools: [] }));
  vi.stubGlobal('fetch', fetch);
  const registry = sdk.ToolRegistry.getInstance();
  expect(sdk.initializeToolRegistry()).toBe(registry);
  expect(registry.client.registry).toBe(registry);
  await registry.getAll();
  const [[url, init]] = fetch.mock.calls as unknown as [[string, RequestInit]];
  expect(String(url)).toBe('http://127.0.0.1:1/v1/shared-tools');
  expect(new Headers(init.headers).get('authorization')).toBe('Bearer sk_test');
});

test('a gateway that is given is the default from then on', () => {
  environment('http://127.0.0.1:1', 'sk_test');
  const before = sdk.initializeToolRegistry();
  const registry = sdk.initializeToolRegistry({ url: 'http://127.0.0.1:2', key: 'sk_other' });
  expect(registry).not.toBe(before);
  expect(sdk.ToolRegistry.getInstance()).toBe(registry);
  const client = new sdk.ToolgateClient({ url: 'http://127.0.0.1:3' });
  // A client of one's own is no default until it is named as one.
  expect(sdk.ToolRegistry.getInstance()).toBe(registry);
  expect(sdk.initializeToolRegistry(client)).toBe(client.registry);
  expect(sdk.initializeToolRegistry()).toBe(client.registry);
  sdk.createVoiceFeedbackInjector();
});

test('without a gateway it is said what is missing, and nothing is kept', () => {
  environment('', '');
  const refused = (words: string) => {
    for (const make of [
      () => sdk.initializeToolRegistry(),
      () => sdk.ToolRegistry.getInstance(),
      () => sdk.createVoiceFeedbackInjector(),
    ]) {
      expect(make).toThrow(words);
      expect(make).toThrow(expect.objectContaining({ name: ValidationError.name }));
    }
  };
  refused('set TOOLGATE_URL and TOOLGATE_SECRET_KEY in the environment');
  environment('http://127.0.0.1:1', '');
  refused('set TOOLGATE_SECRET_KEY in the environment');
  environment('http://127.0.0.1:1', 'sk_test');
  sdk.ToolRegistry.getInstance();
});

test('a browser, which has no environment, is told to name the gateway', () => {
  vi.stubGlobal('process', undefined);
  expect(() => sdk.ToolRegistry.getInstance()).toThrow(
    'call initializeToolRegistry({ url, publicKey, token }) first',
  );
});
