import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const inRepository = (path: string) =>
  readFile(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8');

it.each(['docs/ai-sdk.md', 'examples/ai-sdk-app/README.md'])('%s shows code that is tested', async (page) => {
  const text = await inRepository(page);
  const shown = [...text.matchAll(/(?:<!-- (\S+) -->\n)?```ts\n([\s\S]*?)```/g)];
  expect(shown.length).toBeGreaterThan(0);
  for (const [, file = 'examples/ai-sdk-app/src/app.tsx', code] of shown) {
    expect(await inRepository(file), `${file}, which ${page} quotes`).toContain(code);
  }
});
