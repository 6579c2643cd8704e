import { expect, test, vi } from 'vitest';
import type { McpQuestion } from '../src/plugins/mcp.js';
import { bridged, gone, isAlive, PATIENCE, pidsOf } from './mcp-world.js';
import { gate } from './world.js';

/** What holds with either official package, and in either era. `mode` is that of the test server. */
export function bridgeSuite(mode: 'modern' | 'legacy'): void {
  test('the tools change when the server announces it', async () => {
    const { client, call, names, changes } = await bridged(mode);
    expect(names()).toContain('mcp_t_before');
    expect(changes.map(({ server }) => server)).toEqual(['t']);
    changes.length = 0;
    await call('swap');
    await vi.waitFor(() => expect(names()).toContain('mcp_t_after'), PATIENCE);
    expect(names()).not.toContain('mcp_t_before');
    await vi.waitFor(() => expect(changes.flatMap(({ added }) => added)).toEqual(['mcp_t_after']), PATIENCE);
    expect(changes.flatMap(({ removed }) => removed)).toEqual(['mcp_t_before']);
    expect(changes.flatMap(({ warnings }) => warnings)).toContain('the schema of after was simplified');
    expect(await call('after', { deep: deep(8) })).toBe('after');
    // A chat that runs may still call it, and hears of the server that it is gone.
    expect(client.hasExecutor('mcp_t_before')).toBe(false);
    await expect(call('before')).rejects.toThrow(/disabled|not found/);
  });

  test('a process that dies fails the call, once, and is started again by the next', async () => {
    const world = await bridged(mode);
    await expect(world.call('die')).rejects.toThrow(
      /"t" gave no answer to die, it is unknown whether the call was carried out/,
    );
    expect(await world.call('before')).toBe('before');
    const diary = world.diary();
    expect(diary.filter((line) => line === 'dying')).toHaveLength(1);
    expect(diary.filter((line) => line.startsWith('started'))).toHaveLength(2);
    const [server, helper] = pidsOf(world) as [number, number];
    await gone(server);
    await gone(helper);
  });

  test('a process that dies again and again is left alone', async () => {
    const world = await bridged(mode);
    for (let deaths = 1; deaths <= 5; deaths += 1)
      await expect(world.call('die')).rejects.toThrow(/unknown whether/);
    await expect(world.call('before')).rejects.toThrow(/"t" cannot be reached: its process ended 5 times/);
    expect(world.diary().filter((line) => line === 'dying')).toHaveLength(5);
  });

  test('removing the plugin ends the server and what it has started', async () => {
    const world = await bridged(mode);
    const pids = pidsOf(world);
    expect(pids.every(isAlive)).toBe(true);
    await world.client.unuse('mcp-bridge');
    for (const pid of pids) await gone(pid);
    await expect(world.plugin.refresh()).rejects.toThrow(/was removed/);
  });

  test('a question is answered, and the call goes on', async () => {
    const asked: McpQuestion[] = [];
    const { call } = await bridged(mode, {
      onElicitation: (question) => {
        asked.push(question);
        return { action: 'accept', content: { name: 'Ada', age: 36 } };
      },
    });
    expect(await call('ask')).toBe('Ada is 36');
    expect(asked).toMatchObject([
      { server: 't', message: 'Who are you?', schema: { type: 'object', required: ['name', 'age'] } },
    ]);
  });

  test('a question may be declined', async () => {
    const { call } = await bridged(mode, { onElicitation: () => ({ action: 'decline' }) });
    expect(await call('ask')).toBe('no answer: decline');
  });

  test('an answer that does not match is not sent', async () => {
    const { call } = await bridged(mode, {
      onElicitation: () => ({ action: 'accept', content: { name: 'Ada', age: -1 } }),
    });
    await expect(call('ask')).rejects.toThrow(/does not match what it asked for, "age": less than 0/);
  });

  test('a server that asks without end is stopped', async () => {
    let asked = 0;
    const { call } = await bridged(mode, {
      onElicitation: () => {
        asked += 1;
        return { action: 'accept', content: { name: 'Ada', age: 36 } };
      },
    });
    await expect(call('ask-forever')).rejects.toThrow(/rounds/);
    expect(asked).toBeLessThan(12);
  });

  test('nobody is asked without onElicitation, and no model ever', async () => {
    const { call } = await bridged(mode);
    await expect(call('ask')).rejects.toThrow(/onElicitation|elicitation/);
    await expect(call('ask-model')).rejects.toThrow(/sampling/);
  });

  test('progress arrives, and a cancel reaches the server', async () => {
    const { call, diary } = await bridged(mode);
    const stop = new AbortController();
    const heard = gate<unknown>();
    const progress = async (value: unknown): Promise<void> => heard.open(value);
    const waiting = call('wait', {}, { signal: stop.signal, progress });
    expect(await heard.promise).toMatchObject({ progress: 1, message: 'waiting' });
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await vi.waitFor(() => expect(diary()).toContain('cancelled'), PATIENCE);
  });
}

function deep(levels: number): unknown {
  return levels === 0 ? 'x' : { inner: deep(levels - 1) };
}
