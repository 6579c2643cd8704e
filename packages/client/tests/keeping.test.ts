import { describe, expect, test } from 'vitest';
import { ConflictError, NotFoundError, ToolgateError, ValidationError } from '../src/index.js';
import { world } from './world.js';

describe('files of a space', () => {
  test('are written, read, listed and deleted', async () => {
    const { client } = await world([]);
    const { id } = await client.spaces.create();
    const written = await client.files.write(id, 'notes/größe 1.md', '# Größe', { only: 'new' });
    expect(written).toMatchObject({ path: 'notes/größe 1.md', mimeType: 'text/markdown', version: 1 });
    await client.files.write(id, 'notes/größe 1.md', new Uint8Array([0, 255]), { mimeType: 'image/png' });

    const newest = await client.files.read(id, 'notes/größe 1.md');
    expect(newest).toMatchObject({ version: 2, mimeType: 'image/png', data: new Uint8Array([0, 255]) });
    const first = await client.files.read(id, 'notes/größe 1.md', { version: 1 });
    expect(first.text()).toBe('# Größe');

    await client.files.write(id, 'a.txt', new Blob(['a']));
    const { files, totalFiles } = await client.files.list(id, { prefix: 'notes/' });
    expect([files.map(({ path }) => path), totalFiles]).toEqual([['notes/größe 1.md'], 2]);

    await client.files.delete(id, 'a.txt');
    await expect(client.files.read(id, 'a.txt')).rejects.toThrow(NotFoundError);
  });

  test('are shown by a link that needs no key', async () => {
    const { client } = await world([]);
    const { id } = await client.spaces.create();
    await client.files.write(id, 'größe 1.png', new Uint8Array([137, 80]), { mimeType: 'image/png' });
    const link = await client.files.link(id, 'größe 1.png', { version: 1, expiresIn: 60 });
    expect(link).toMatchObject({ version: 1, inline: true, mimeType: 'image/png' });
    const shown = await fetch(link.url);
    expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(new Uint8Array(await shown.arrayBuffer())).toEqual(new Uint8Array([137, 80]));
    await client.files.delete(id, 'größe 1.png');
    expect((await fetch(link.url)).status).toBe(404);
    await expect(client.files.link(id, 'größe 1.png')).rejects.toThrow(NotFoundError);
  });

  test('are changed only as they were seen', async () => {
    const { client } = await world([]);
    const { id } = await client.spaces.create();
    await client.files.write(id, 'a.txt', '1');
    await client.files.write(id, 'a.txt', '2', { only: { version: 1 } });
    const changed = { code: 'CHANGED', status: 412 };
    await expect(client.files.write(id, 'a.txt', '3', { only: { version: 1 } })).rejects.toMatchObject(
      changed,
    );
    await expect(client.files.write(id, 'a.txt', '3', { only: 'new' })).rejects.toMatchObject(changed);
    await expect(client.files.delete(id, 'a.txt', { version: 1 })).rejects.toThrow(ToolgateError);
    expect((await client.files.read(id, 'a.txt')).text()).toBe('2');
  });

  test('have names that lead nowhere else', async () => {
    const { client } = await world([]);
    for (const name of ['../../agents/default', 'a/./b', '', '/a', 'a//b']) {
      await expect(client.files.write('space_x', name, 'x')).rejects.toThrow(ValidationError);
    }
  });
});

describe('knowledge', () => {
  test('is put, listed and deleted, the project’s and an agent’s apart', async () => {
    const { client } = await world([]);
    await client.agents.put('cook', { instructions: 'Cook.' });
    const put = await client.knowledge.put('guide', '# Tea\n\nBoil water.', {
      mimeType: 'text/markdown',
      source: 'https://example.com/tea?a=1&b=2',
    });
    expect(put).toMatchObject({ id: 'guide', title: 'Tea', source: 'https://example.com/tea?a=1&b=2' });
    await client.knowledge.put('secret', 'A pinch of salt.', { agent: 'cook', title: 'Salt' });
    const ids = async (agent?: string): Promise<string[]> => {
      const { documents } = await client.knowledge.list(agent ? { agent } : {});
      return documents.map(({ id }) => id);
    };
    expect([await ids(), await ids('cook')]).toEqual([['guide'], ['secret']]);
    expect((await client.knowledge.get('secret', { agent: 'cook' })).text).toBe('A pinch of salt.');
    await client.knowledge.delete('guide');
    expect(await ids()).toEqual([]);
    await expect(client.knowledge.delete('guide')).rejects.toThrow(NotFoundError);
  });
});

describe('a call that waits', () => {
  test('goes on with a signal, once', async () => {
    const { client } = await world([{ calls: [{ name: 'delivery' }] }, 'It came.']);
    const tool = {
      name: 'delivery',
      description: 'Waits for it.',
      executionType: 'waiting',
      execution: { signal: true },
    };
    await client.agents.put('default', { tools: [tool] });
    const { runId } = await client.runs.start('order it');
    let callId = '';
    for await (const event of client.runs.subscribe(runId ?? '')) {
      if (event.type === 'tool-executing') {
        callId = event.toolCallId;
        break;
      }
    }
    const receipt = await client.calls.signal(callId, { at: 'the door' });
    expect(await client.calls.signal(callId, { at: 'the door' })).toEqual(receipt);
    await expect(client.calls.signal(callId, 'lost')).rejects.toThrow(ConflictError);
    for await (const event of client.runs.subscribe(runId ?? '')) if (event.type === 'run-finish') break;
    expect((await client.runs.get(runId ?? '')).text).toBe('It came.');
  });
});

describe('tools', () => {
  test('are found by what they are for, in the words of a vendor too', async () => {
    const { client } = await world([]);
    const quiz = {
      name: 'quiz',
      description: 'Asks.',
      category: 'assessment',
      triggers: ['Verifica la città'],
    };
    await client.agents.put('teacher', { tools: [quiz, { name: 'other', description: 'Else.' }] });
    expect((await client.tools.list({ trigger: 'la citta' })).map(({ name }) => name)).toEqual(['quiz']);
    expect(await client.tools.definitions('anthropic', { category: 'Assessment' })).toEqual([
      { name: 'quiz', description: 'Asks.', input_schema: { type: 'object' } },
    ]);
  });
});
