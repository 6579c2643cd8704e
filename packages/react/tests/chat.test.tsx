// @vitest-environment happy-dom
// @vitest-environment-options {"settings": {"fetch": {"disableSameOriginPolicy": true}}}

import { cleanup, configure, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { ToolgateClient } from '@toolgate/client';
import {
  type ToolComponentProps,
  ToolgateChat,
  ToolgateChatProvider,
  type Tools,
  useApprovals,
  useRun,
  useToolgateChat,
  useToolResult,
} from '@toolgate/react';
import { startProxy } from '@toolgate/test-support';
import { type ReactNode, StrictMode } from 'react';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.js';

const PARAMETERS = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
const AGENT = {
  tools: [
    {
      name: 'refund',
      description: 'Pays back.',
      parameters: PARAMETERS,
      executionType: 'basic',
      execution: { mode: 'pass-through' },
      approval: 'always',
    },
  ],
};
const PICK: Tools = { pick: { description: 'Picks something.', parameters: PARAMETERS } };

configure({ asyncUtilTimeout: 20_000 });

/** What the model's next reply waits for. */
let hold: Promise<unknown> | undefined;

describe('the chat', () => {
  let world: World;
  let client: ToolgateClient;

  beforeAll(async () => {
    world = await startWorld(({ messages, tools = [] }) => {
      const last = messages.at(-1);
      const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content);
      if (last?.role === 'tool') return `It gave ${said}.`;
      if (said.includes('fail')) return { status: 401 };
      if (said.includes('think')) return { reasoning: 'Let me think.', text: 'Thought.' };
      const calls = tools.filter((tool) => said.includes(tool.function.name));
      const reply = { text: `You said ${said}.`, calls: calls.map((tool) => named(tool.function.name)) };
      return hold ? { ...reply, hold } : reply;
    });
    client = world.client;
    const model = { provider: 'openai', name: 'scripted', baseUrl: world.model.baseUrl, apiKey: 'none' };
    await client.agents.put('clerk', { ...AGENT, model });
  }, 60_000);
  afterAll(() => world?.stop());
  afterEach(cleanup);

  const named = (name: string) => ({ name, args: { amount: 5 } });

  function show(
    props: Partial<Parameters<typeof ToolgateChatProvider>[0]> = {},
    children: ReactNode = <ToolgateChat />,
  ) {
    const view = (more: typeof props = {}) => (
      <StrictMode>
        <ToolgateChatProvider client={client} agent="clerk" {...props} {...more}>
          {children}
        </ToolgateChatProvider>
      </StrictMode>
    );
    const rendered = render(view());
    return { ...rendered, update: (more: typeof props) => rendered.rerender(view(more)) };
  }

  function say(text: string): void {
    const box = screen.getByLabelText('Message');
    fireEvent.change(box, { target: { value: text } });
    fireEvent.keyDown(box, { key: 'Enter' });
  }

  const sees = (text: string | RegExp) => screen.findByText(text);

  test('shows a message at once and the answer as it streams', async () => {
    let goOn = (_: unknown): void => {};
    hold = new Promise((resolve) => {
      goOn = resolve;
    });
    show();
    say('good morning');
    screen.getByText('good morning');
    expect((await sees('You')).closest('[data-streaming]')).not.toBeNull();
    screen.getByRole('button', { name: 'Stop' });
    hold = undefined;
    goOn(undefined);
    const answer = await sees('You said good morning.');
    await waitFor(() => expect(answer.closest('[data-streaming]')).toBeNull());
    await waitFor(() => expect(screen.queryByRole('button', { name: 'Stop' })).toBeNull());
    expect(screen.getAllByText('good morning')).toHaveLength(1);
  });

  test('keeps a line break on Shift+Enter and leaves input methods alone', () => {
    show();
    const box = screen.getByLabelText('Message');
    fireEvent.change(box, { target: { value: 'two lines' } });
    fireEvent.keyDown(box, { key: 'Enter', shiftKey: true });
    fireEvent.keyDown(box, { key: 'Enter', isComposing: true });
    expect(screen.queryByLabelText('You')).toBeNull();
  });

  test('shows what the model thought, folded', async () => {
    show();
    say('think');
    const summary = await sees('Thought about it');
    expect(summary.closest('details')?.open).toBe(false);
    screen.getByText('Let me think.');
  });

  test('runs a call after a yes', async () => {
    show();
    say('refund');
    const card = within(await screen.findByRole('group', { name: /refund/ }));
    card.getByText('5');
    fireEvent.click(card.getByRole('button', { name: 'Approve' }));
    await sees('It gave {"amount":5}.');
  });

  test('runs a call with the input that a person made of it', async () => {
    show();
    say('refund');
    fireEvent.click(await screen.findByRole('button', { name: 'Edit' }));
    fireEvent.change(screen.getByLabelText('amount'), { target: { value: 'much' } });
    fireEvent.click(screen.getByRole('button', { name: 'Approve changes' }));
    expect(screen.getByRole('alert').textContent).toBe('amount: expected a number');
    fireEvent.change(screen.getByLabelText('amount'), { target: { value: '4' } });
    fireEvent.click(screen.getByRole('button', { name: 'Approve changes' }));
    await sees('It gave {"amount":4}.');
  });

  test('tells the model why a call was rejected', async () => {
    show();
    say('refund');
    fireEvent.click(await screen.findByRole('button', { name: 'Reject' }));
    fireEvent.change(screen.getByLabelText(/Why not/), { target: { value: 'not on a Sunday' } });
    fireEvent.click(screen.getByRole('button', { name: 'Reject' }));
    await sees(/It gave .*not on a Sunday/);
    screen.getByText('Declined: not on a Sunday');
  });

  test('executes a tool that the page brings, and gives it to the agent with each message', async () => {
    const tools: Tools = {
      double: {
        description: 'Doubles.',
        parameters: PARAMETERS,
        execute: ({ amount }: { amount: number }) => amount * 2,
      },
    };
    show({ tools });
    say('double');
    await sees('It gave 10.');
  });

  test('executes the tools of a client with plugins', async () => {
    const plugged = new ToolgateClient({ url: world.gateway.url, key: world.gateway.secretKey });
    plugged.registerTool({
      name: 'halve',
      description: 'Halves.',
      parameters: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
      execute: ({ amount }) => amount / 2,
    });
    show({ client: plugged });
    say('halve');
    await sees('It gave 2.5.');
  });

  test('tells the model what a handler threw', async () => {
    const execute = () => {
      throw new Error('out of teapots');
    };
    show({ tools: { pour: { description: 'Pours.', parameters: PARAMETERS, execute } } });
    say('pour');
    await sees(/It gave .*out of teapots/);
    screen.getByText(/Failed: .*out of teapots/);
  });

  test('ends a handler that takes too long', async () => {
    const execute = () => new Promise(() => {});
    show({ tools: { nap: { description: 'Sleeps.', parameters: PARAMETERS, execute, timeout: 20 } } });
    say('nap');
    await sees(/It gave .*nap gave no result within 20 ms/);
  });

  test('lets a tool have a component that shows it', async () => {
    const Double = ({ input, output, state }: ToolComponentProps<{ amount: number }, number>) => (
      <output>
        {state}: {input?.amount} → {output}
      </output>
    );
    const execute = ({ amount }: { amount: number }) => amount * 2;
    const tools = { double: { description: 'Doubles.', parameters: PARAMETERS, execute } };
    show({ tools, components: { double: Double } });
    say('double');
    await sees('output-available: 5 → 10');
  });

  test('lets a component be the executor', async () => {
    const Pick = ({ isOpen, submit }: ToolComponentProps) => (
      <button type="button" disabled={!isOpen} onClick={() => submit('the blue one')}>
        Blue
      </button>
    );
    show({ tools: PICK, components: { pick: Pick } });
    say('pick');
    const blue = await screen.findByRole('button', { name: 'Blue' });
    await waitFor(() => expect(blue).toHaveProperty('disabled', false));
    fireEvent.click(blue);
    await sees('It gave the blue one.');
    expect(screen.getByRole('button', { name: 'Blue' })).toHaveProperty('disabled', true);
  });

  test('shows the plain card when a component throws', async () => {
    const Broken = (): ReactNode => {
      throw new Error('broken');
    };
    show({ tools: PICK, components: { pick: Broken } });
    say('pick');
    await sees('Waiting for a client');
  });

  test('says when the run failed', async () => {
    show();
    say('fail');
    const alert = await screen.findByRole('alert');
    expect(alert.textContent).not.toBe('');
    expect(screen.getByRole('region', { name: 'Chat' }).getAttribute('data-status')).toBe('error');
  });

  test('keeps a message that was refused, and sends it again when asked', async () => {
    const { update } = show({ agent: 'nobody' });
    say('hello again');
    const again = await screen.findByRole('button', { name: 'Try again' });
    screen.getByRole('alert');
    update({ agent: 'clerk' });
    fireEvent.click(again);
    await sees('You said hello again.');
    expect(screen.getAllByText('hello again')).toHaveLength(1);
  });

  test('comes back after a cut with nothing missing and nothing twice', async () => {
    const proxy = await startProxy(world.gateway.url);
    const through = new ToolgateClient({ url: proxy.url, key: world.gateway.secretKey });
    const { id } = await client.spaces.create({ agent: 'clerk' });
    show({ client: through, defaultSpaceId: id });
    await client.spaces.post(id, 'before');
    await sees('You said before.');
    proxy.cut();
    await client.spaces.post(id, 'after');
    await sees('You said after.');
    expect(screen.getAllByText('You said before.')).toHaveLength(1);
    cleanup();
    await proxy.stop();
  });

  test('says that it cannot connect, and connects when asked', async () => {
    show({ defaultSpaceId: 'space_01m7gzrxj1ecfbh3z69f7rvjzy' });
    fireEvent.click(await screen.findByRole('button', { name: 'Connect again' }));
    await screen.findByRole('button', { name: 'Connect again' });
  });

  test('begins a new conversation, and tells where it is', async () => {
    const moves: (string | undefined)[] = [];
    const New = () => {
      const { open } = useToolgateChat();
      return (
        <button type="button" onClick={() => open(undefined)}>
          New
        </button>
      );
    };
    const both = (
      <>
        <New />
        <ToolgateChat welcome={<h2>Empty</h2>} suggestions={['say this']} />
      </>
    );
    show({ onSpaceChange: (spaceId) => moves.push(spaceId) }, both);
    fireEvent.click(screen.getByRole('button', { name: 'say this' }));
    await sees('You said say this.');
    fireEvent.click(screen.getByRole('button', { name: 'New' }));
    await sees('Empty');
    expect(moves).toEqual([expect.stringMatching(/^space_/), undefined]);
  });

  test('gives results by hand, and says so while it does', async () => {
    const { id } = await client.spaces.create({ agent: 'clerk' });
    const definition = { name: 'pick', ...(PICK.pick as object) } as never;
    const { runId } = await client.spaces.post(id, { message: 'pick', clientTools: [definition] });
    const ByHand = () => {
      const { run, calls } = useRun(runId ?? undefined);
      const { submit, submitToRun, isSubmitting, error } = useToolResult();
      const callId = calls[0]?.id ?? '';
      return (
        <>
          <p>
            {run?.status} {isSubmitting ? 'submitting' : 'idle'} {error?.message}
          </p>
          <button type="button" onClick={() => submitToRun(runId ?? '', { callId, result: 'red' })}>
            Red
          </button>
          <button
            type="button"
            onClick={() => submit(id, { toolCallId: callId, result: 'blue' }).catch(() => {})}
          >
            Blue
          </button>
        </>
      );
    };
    show({}, <ByHand />);
    await sees(/^waiting_tool idle/);
    fireEvent.click(screen.getByRole('button', { name: 'Red' }));
    screen.getByText(/submitting/);
    await sees(/^completed idle/);
    fireEvent.click(screen.getByRole('button', { name: 'Blue' }));
    await sees(/^completed idle .+/);
  });

  test('lists the approvals of a space for whoever wants to draw them', async () => {
    const { id } = await client.spaces.create({ agent: 'clerk' });
    await client.spaces.post(id, 'refund');
    const Desk = () => {
      const { approvals, approve } = useApprovals(id);
      return (
        <ul>
          {approvals.map((approval) => (
            <li key={approval.id}>
              <button type="button" onClick={() => approve(approval.id, { amount: 1 })}>
                {approval.toolName}
              </button>
            </li>
          ))}
        </ul>
      );
    };
    show({ defaultSpaceId: id }, <Desk />);
    fireEvent.click(await screen.findByRole('button', { name: 'refund' }));
    await waitFor(() => expect(screen.queryByRole('button', { name: 'refund' })).toBeNull());
  });

  test('needs its provider, and says so', () => {
    expect(() => render(<ToolgateChat />)).toThrow('<ToolgateChatProvider>');
  });
});
