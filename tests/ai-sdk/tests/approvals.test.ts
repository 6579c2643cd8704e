import { describe, expect, it } from 'vitest';
import { sendWhenAnswered } from '../../../packages/client/src/send-when-answered.ts';
import type { Client } from '../src/client.ts';
import { useScene } from '../src/scene.ts';
import { sdks, sdksWithApprovals } from '../src/sdk.ts';
import { clientTool, serverTool } from '../src/world.ts';

const scene = useScene();
const asksForRefund = { text: 'I ask.', calls: [{ name: 'refund', args: { city: 'Paris' } }] };
const withRefund = () =>
  scene.world.agent({
    tools: [{ ...serverTool('refund', null), execution: { mode: 'pass-through' }, approval: 'always' }],
  });
const withErase = () => scene.world.agent({ tools: [{ ...clientTool('erase'), approval: 'always' }] });
const toolResults = () =>
  scene.world.asked
    .at(-1)
    ?.messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => String(content));

describe.each(sdksWithApprovals)('approvals in $dialect', (sdk) => {
  const respond = async (client: Client, tool: string, approved: boolean, reason?: string) => {
    const id = client.call(tool).approval?.id ?? '';
    await client.chat.addToolApprovalResponse({ id, approved, ...(reason ? { reason } : {}) });
    await client.rest();
  };

  it.each([sdk.dialect, 'default'] as const)(
    'runs a call that a person allows (dialect %s)',
    async (dialect) => {
      scene.world.script(asksForRefund, 'Refunded.');
      const client = scene.open(sdk, { agent: await withRefund(), dialect });
      await client.say('refund me');
      expect(client.call('refund')).toMatchObject({ state: 'approval-requested', input: { city: 'Paris' } });
      await respond(client, 'refund', true);
      expect(client.call('refund')).toMatchObject({ state: 'output-available', output: { city: 'Paris' } });
      expect(client.words).toEqual(['I ask.', 'Refunded.']);
      expect(client.messages).toHaveLength(2);
      expect(client.ran).toEqual([]);
      expect(client.posts).toBe(2);
    },
  );

  it('asks in the chat what an agent below the chat agent needs a yes for', async () => {
    const mailer = await withRefund();
    const agent = await scene.world.agent({
      tools: [{ ...serverTool('mail', null), executionType: 'ai-agent', execution: { agent: mailer } }],
    });
    scene.world.script(
      { calls: [{ name: 'mail', args: { city: 'Paris' } }] },
      { calls: [{ name: 'refund', args: { city: 'Paris' } }] },
      'Below: done.',
      'Refunded.',
    );
    const client = scene.open(sdk, { agent });
    await client.say('refund me');
    expect(client.call('refund')).toMatchObject({ state: 'approval-requested', input: { city: 'Paris' } });
    // Sent by the SDK's helper, although the call above is still open: the question stands in a step of its own.
    await respond(client, 'refund', true);
    expect(client.call('refund')).toMatchObject({ state: 'output-available' });
    expect(client.call('mail')).toMatchObject({ state: 'output-available' });
    expect(client.words).toEqual(['Refunded.']);
    expect(client.posts).toBe(2);
  });

  it('sends the answers to one question after another from below, and to two at once', async () => {
    const mailer = await withRefund();
    const mail = { executionType: 'ai-agent', execution: { agent: mailer } };
    const agent = await scene.world.agent({
      tools: [
        { ...serverTool('mail', null), ...mail },
        { ...serverTool('post', null), ...mail },
      ],
    });
    const asks = { calls: [{ name: 'refund', args: { city: 'Paris' } }] };
    scene.world.script({ calls: [{ name: 'mail' }] }, asks, asks, 'Below: done.', 'Refunded twice.');
    const client = scene.open(sdk, { agent });
    await client.say('refund me twice');
    for (const round of [1, 2]) {
      const open = client.calls('refund').find(({ state }) => state === 'approval-requested');
      await client.chat.addToolApprovalResponse({ id: open?.approval?.id ?? '', approved: true });
      await client.rest();
      expect(client.posts).toBe(1 + round);
    }
    expect(client.words).toEqual(['Refunded twice.']);

    scene.world.script(
      { calls: [{ name: 'mail' }, { name: 'post' }] },
      asks,
      asks,
      'Below: done.',
      'Below: done.',
      'Both refunded.',
    );
    const both = scene.open(sdk, { agent });
    await both.say('refund both');
    for (const { approval, state } of both.calls('refund')) {
      expect([state, both.posts]).toEqual(['approval-requested', 1]);
      await both.chat.addToolApprovalResponse({ id: approval?.id ?? '', approved: true });
    }
    await both.rest();
    expect(both.words).toEqual(['Both refunded.']);
    expect(both.posts).toBe(2);
  });

  it('sends what the client ran beside a call above with the answer to the question below', async () => {
    const mailer = await withRefund();
    const agent = await scene.world.agent({
      tools: [
        clientTool('weather'),
        { ...serverTool('mail', null), executionType: 'ai-agent', execution: { agent: mailer } },
      ],
    });
    scene.world.script(
      { calls: [{ name: 'weather', args: { city: 'Paris' } }, { name: 'mail' }] },
      { calls: [{ name: 'refund', args: { city: 'Paris' } }] },
      'Below: done.',
      'Sunny and refunded.',
    );
    const client = scene.open(sdk, { agent, execute: { weather: () => 'sunny' } });
    await client.say('weather and refund');
    await respond(client, 'refund', true);
    expect(client.call('weather')).toMatchObject({ state: 'output-available', output: 'sunny' });
    expect(client.call('mail')).toMatchObject({ state: 'output-available' });
    expect(client.words).toEqual(['Sunny and refunded.']);
  });

  it('sends the answer to a question of its own agent after one from below, with sendWhenAnswered', async () => {
    const mailer = await withRefund();
    const agent = await scene.world.agent({
      tools: [
        { ...serverTool('pay', 'paid'), approval: 'always' },
        clientTool('weather'),
        { ...serverTool('mail', null), executionType: 'ai-agent', execution: { agent: mailer } },
      ],
    });
    const asks = { calls: [{ name: 'refund', args: { city: 'Paris' } }] };
    const calls = (own: string) => ({ calls: [{ name: own }, { name: 'mail' }] });
    scene.world.script(calls('pay'), asks, 'Below: done.', 'Paid and refunded.');
    const client = scene.open(sdk, { agent, sendAutomaticallyWhen: sendWhenAnswered() });
    await client.say('pay and refund');
    await respond(client, 'refund', true);
    expect([client.call('pay').state, client.posts]).toEqual(['approval-requested', 1]);
    await respond(client, 'pay', true);
    expect(client.call('pay')).toMatchObject({ state: 'output-available', output: 'paid' });
    expect(client.words).toEqual(['Paid and refunded.']);
    expect(client.posts).toBe(2);

    scene.world.script(calls('weather'), asks, 'Below: done.', 'Sunny and refunded.');
    const other = scene.open(sdk, { agent, sendAutomaticallyWhen: sendWhenAnswered() });
    await other.say('weather and refund');
    await respond(other, 'refund', true);
    const { toolCallId } = other.call('weather');
    await other.chat.addToolOutput({ tool: 'weather', toolCallId: String(toolCallId), output: 'sunny' });
    await other.rest();
    expect(other.words).toEqual(['Sunny and refunded.']);
    expect(other.posts).toBe(2);
  });

  it('runs a client tool once after the yes, with sendWhenAnswered', async () => {
    scene.world.script({ calls: [{ name: 'erase' }] }, 'Erased.');
    const client = scene.open(sdk, {
      agent: await withErase(),
      execute: { erase: () => 'gone' },
      sendAutomaticallyWhen: sendWhenAnswered(),
    });
    await client.say('erase it');
    await respond(client, 'erase', true);
    expect(client.call('erase')).toMatchObject({ state: 'output-available', output: 'gone' });
    expect(client.words).toEqual(['Erased.']);
    expect(client.posts).toBe(3);
  });

  it('sends the result of one call beside the no to another, with sendWhenAnswered', async () => {
    const agent = await scene.world.agent({
      tools: [
        { ...serverTool('pay', 'paid'), approval: 'always' },
        { ...clientTool('erase'), approval: 'always' },
      ],
    });
    scene.world.script({ calls: [{ name: 'pay' }, { name: 'erase' }] }, 'Erased, not paid.');
    const client = scene.open(sdk, {
      agent,
      execute: { erase: () => 'gone' },
      sendAutomaticallyWhen: sendWhenAnswered(),
    });
    await client.say('pay and erase');
    await respond(client, 'pay', false);
    await respond(client, 'erase', true);
    expect(client.call('pay').state).toBe('output-denied');
    expect(client.call('erase')).toMatchObject({ state: 'output-available', output: 'gone' });
    expect(client.words).toEqual(['Erased, not paid.']);
    expect(client.posts).toBe(3);
  });

  it.each([true, false])(
    'does not ask again when the run ends with a call that was decided on (%s), with sendWhenAnswered',
    async (approved) => {
      const agent = await scene.world.agent({
        tools: [{ ...serverTool('pay', 'paid'), approval: 'always' }],
        loop: { maxSteps: 1 },
      });
      scene.world.script({ calls: [{ name: 'pay' }] }, 'Not asked.');
      const client = scene.open(sdk, { agent, sendAutomaticallyWhen: sendWhenAnswered() });
      await client.say('pay');
      await respond(client, 'pay', approved);
      expect(client.call('pay').state).toBe(approved ? 'output-available' : 'output-denied');
      expect(client.posts).toBe(2);
    },
  );

  it('does not run a call that a person refuses, and says why', async () => {
    scene.world.script(asksForRefund, 'Not refunded.');
    const client = scene.open(sdk, { agent: await withRefund() });
    await client.say('refund me');
    await respond(client, 'refund', false, 'too much');
    expect(client.call('refund').state).toBe('output-denied');
    expect(toolResults()).toEqual([expect.stringContaining('too much')]);
    expect(client.words).toEqual(['I ask.', 'Not refunded.']);
    expect(client.posts).toBe(2);
  });

  it('runs a call with the input that a person changed', async () => {
    scene.world.script(asksForRefund, 'Refunded.');
    const client = scene.open(sdk, { agent: await withRefund() });
    await client.say('refund me');
    const id = client.call('refund').approval?.id;
    await scene.world.call('POST', `/v1/approvals/${id}`, { approved: true, input: { city: 'Rome' } });
    await respond(client, 'refund', true);
    expect(client.call('refund')).toMatchObject({
      state: 'output-available',
      input: { city: 'Rome' },
      output: { city: 'Rome' },
    });
    expect(client.words).toEqual(['I ask.', 'Refunded.']);
    expect(client.posts).toBe(2);
  });

  it('tells the later of two people what the first decided', async () => {
    scene.world.script(asksForRefund, 'Not refunded.');
    const client = scene.open(sdk, { agent: await withRefund() });
    await client.say('refund me');
    const id = client.call('refund').approval?.id;
    await scene.world.call('POST', `/v1/approvals/${id}`, { approved: false, reason: 'no' });
    await respond(client, 'refund', true);
    expect(client.call('refund').state).toBe('output-denied');
    expect(client.words).toEqual(['I ask.', 'Not refunded.']);
    expect(client.chat.error).toBeUndefined();
    expect(client.posts).toBe(2);
  });

  it('does not run a client tool before the yes, and once after it', async () => {
    scene.world.script({ calls: [{ name: 'erase', args: { city: 'Paris' } }] }, 'Erased.');
    const client = scene.open(sdk, { agent: await withErase(), execute: { erase: () => 'gone' } });
    await client.say('erase it');
    expect(client.ran).toEqual([]);
    expect(client.call('erase')).toMatchObject({ state: 'approval-requested', input: { city: 'Paris' } });
    await respond(client, 'erase', true);
    expect(client.ran).toMatchObject([{ tool: 'erase', input: { city: 'Paris' } }]);
    expect(client.call('erase')).toMatchObject({ state: 'output-available', output: 'gone' });
    expect(client.words).toEqual(['Erased.']);
    expect(client.posts).toBe(3);
  });

  it('runs a client tool with the input that a person changed', async () => {
    scene.world.script({ calls: [{ name: 'erase', args: { city: 'Paris' } }] }, 'Erased.');
    const client = scene.open(sdk, { agent: await withErase(), execute: { erase: () => 'gone' } });
    await client.say('erase it');
    const id = client.call('erase').approval?.id;
    await scene.world.call('POST', `/v1/approvals/${id}`, { approved: true, input: { city: 'Rome' } });
    await respond(client, 'erase', true);
    expect(client.ran).toMatchObject([{ tool: 'erase', input: { city: 'Rome' } }]);
    expect(client.call('erase')).toMatchObject({ input: { city: 'Rome' }, output: 'gone' });
    expect(client.words).toEqual(['Erased.']);
  });

  it('does not run a client tool that a person refuses', async () => {
    scene.world.script({ calls: [{ name: 'erase' }] }, 'It stays.');
    const client = scene.open(sdk, { agent: await withErase(), execute: { erase: () => 'gone' } });
    await client.say('erase it');
    await respond(client, 'erase', false);
    expect(client.ran).toEqual([]);
    expect(client.call('erase').state).toBe('output-denied');
    expect(client.words).toEqual(['It stays.']);
    expect(client.posts).toBe(2);
  });

  it('goes on when both an approval and a client tool are settled', async () => {
    scene.world.script({ calls: [{ name: 'refund' }, { name: 'weather' }] }, 'Both.');
    const client = scene.open(sdk, {
      agent: await withRefund(),
      body: { clientTools: [clientTool('weather')] },
      execute: { weather: () => 'sunny' },
    });
    await client.say('refund and weather');
    await respond(client, 'refund', true);
    expect(client.call('refund').state).toBe('output-available');
    expect(client.call('weather')).toMatchObject({ state: 'output-available', output: 'sunny' });
    expect(client.words).toEqual(['Both.']);
    expect(client.chat.error).toBeUndefined();
    expect(client.posts).toBe(2);
  });

  it('runs a client tool once after the yes, also beside other calls', async () => {
    const agent = await scene.world.agent({
      tools: [{ ...clientTool('erase'), approval: 'always' }, serverTool('lookup', 'seven')],
    });
    scene.world.script({ calls: [{ name: 'lookup' }, { name: 'erase' }] }, 'Erased.');
    const client = scene.open(sdk, { agent, execute: { erase: () => 'gone' } });
    await client.say('erase it');
    await respond(client, 'erase', true);
    expect(client.ran.map(({ tool }) => tool)).toEqual(['erase']);
    expect(client.call('lookup').output).toBe('seven');
    expect(client.words).toEqual(['Erased.']);
    expect(client.posts).toBe(3);
  });

  it('does not run a client tool that another tab has run', async () => {
    scene.world.script({ calls: [{ name: 'erase' }] }, 'Erased.');
    const agent = await withErase();
    const first = scene.open(sdk, { agent, execute: { erase: () => 'gone' } });
    await first.say('erase it');
    const second = scene.open(sdk, {
      agent,
      chatId: first.chat.id,
      messages: structuredClone(first.messages),
      execute: { erase: () => 'gone twice' },
    });
    await respond(first, 'erase', true);
    await respond(second, 'erase', true);
    expect(first.ran).toHaveLength(1);
    expect(second.ran).toEqual([]);
    expect(second.call('erase')).toMatchObject({ state: 'output-available', output: 'gone' });
    expect(second.words).toEqual(['Erased.']);
    expect(second.posts).toBe(1);
  });

  it('asks again after a reload', async () => {
    scene.world.script(asksForRefund, 'Refunded.');
    const agent = await withRefund();
    const before = scene.open(sdk, { agent });
    await before.say('refund me');
    const after = scene.open(sdk, { agent, chatId: before.chat.id, messages: before.messages.slice(0, 1) });
    await after.chat.resumeStream();
    expect(after.call('refund').state).toBe('approval-requested');
    await respond(after, 'refund', true);
    expect(after.words).toEqual(['I ask.', 'Refunded.']);
  });
});

const v5 = sdks.filter(({ approvals }) => !approvals);
describe.each(v5)('approvals in $dialect, which has none of its own', (sdk) => {
  const decide = async (client: Client, decision: object) => {
    const approval = client.answer.parts.find(({ type }) => type === 'data-approval')?.data;
    await scene.world.call('POST', `/v1/approvals/${approval?.approvalId}`, decision);
    await client.chat.sendMessage();
    await client.rest();
  };

  it('asks by a data part, and goes on when the client asks how it went', async () => {
    scene.world.script(asksForRefund, 'Refunded.');
    const client = scene.open(sdk, { agent: await withRefund() });
    await client.say('refund me');
    const [asked] = client.answer.parts.filter(({ type }) => type === 'data-approval');
    expect(asked?.data).toMatchObject({ toolName: 'refund', input: { city: 'Paris' } });
    await decide(client, { approved: true, input: { city: 'Rome' } });
    expect(client.call('refund')).toMatchObject({ input: { city: 'Rome' }, output: { city: 'Rome' } });
    expect(client.words).toEqual(['I ask.', 'Refunded.']);
    expect(client.messages).toHaveLength(2);
    expect(client.posts).toBe(2);
  });

  it('tells a no as an error', async () => {
    scene.world.script(asksForRefund, 'Not refunded.');
    const client = scene.open(sdk, { agent: await withRefund() });
    await client.say('refund me');
    await decide(client, { approved: false, reason: 'too much' });
    expect(client.call('refund')).toMatchObject({ state: 'output-error', errorText: 'too much' });
    expect(client.words).toEqual(['I ask.', 'Not refunded.']);
  });

  it('does not ask without end while it waits beside a client tool', async () => {
    scene.world.script({ calls: [{ name: 'refund' }, { name: 'weather' }] }, 'Both.');
    const body = { clientTools: [clientTool('weather')] };
    const client = scene.open(sdk, { agent: await withRefund(), body, execute: { weather: () => 'sunny' } });
    await client.say('refund and weather');
    expect(client.posts).toBe(1);
    await decide(client, { approved: true });
    expect(client.call('refund').state).toBe('output-available');
    expect(client.call('weather').output).toBe('sunny');
    expect(client.words).toEqual(['Both.']);
    expect(client.posts).toBe(2);
  });

  it('runs a client tool only after the yes', async () => {
    scene.world.script({ calls: [{ name: 'erase' }] }, 'Erased.');
    const client = scene.open(sdk, { agent: await withErase(), execute: { erase: () => 'gone' } });
    await client.say('erase it');
    expect(client.ran).toEqual([]);
    await decide(client, { approved: true });
    expect(client.ran).toMatchObject([{ tool: 'erase' }]);
    expect(client.words).toEqual(['Erased.']);
  });
});
