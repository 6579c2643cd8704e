import { ToolgateClient, type wire } from '@toolgate/client';

/** A gateway of one space whose events come exactly when a test tells them. */
export interface ToldGateway {
  readonly spaceId: string;
  /** A client of it, as a page that is loaded anew has one. */
  connect(): ToolgateClient;
  /** Resolves when a page was told where the log ends. */
  readonly isAsked: Promise<void>;
  /** Stores events and sends them to whoever listens, in one piece. */
  tell(...events: wire.Event[]): void;
  /** Breaks every stream; nobody gets in again before `letIn`. */
  cut(): void;
  letIn(): void;
  /** Streams stop after this place of what is stored, until `goOn`. */
  stopAt(seq: number): void;
  goOn(): void;
  /** Answers the request for runs only after `goOn`. */
  holdRuns(): void;
  /** Answers decisions on this approval with 403. */
  refuse(approvalId: string): void;
  /** The approvals that were decided on, or would have been. */
  readonly decided: string[];
}

/** A gateway with these events in its log. */
export function tellingGateway(...log: wire.Event[]): ToldGateway {
  const spaceId = 'space_1';
  const streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
  const refused = new Set<string>();
  const decided: string[] = [];
  const asked = signal();
  const onward = signal();
  let held = Promise.resolve();
  let end = Number.POSITIVE_INFINITY;
  let isAway = false;
  /** What is sent of the log: events for backends alone are not. */
  const seen = () => log.filter(({ type }) => type !== 'tool-sampling');
  const bytes = (events: wire.Event[]) =>
    new TextEncoder().encode(
      events.map((event) => `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
    );
  const stream = (after: number): Response =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          const kept = seen().filter(({ seq }) => seq > after);
          controller.enqueue(bytes(kept.filter(({ seq }) => seq <= end)));
          if (kept.every(({ seq }) => seq <= end)) return void streams.add(controller);
          void onward.fired.then(() => {
            controller.enqueue(bytes(kept.filter(({ seq }) => seq > end)));
            streams.add(controller);
          });
        },
      }),
    );
  const answer = async (url: URL, init: RequestInit): Promise<Response> => {
    if (isAway) throw new TypeError('fetch failed');
    const headers = new Headers(init.headers);
    if (url.pathname === '/v1/spaces') return Response.json({ id: spaceId, members: [] });
    if (url.pathname.endsWith('/messages')) return Response.json({ messageId: 'msg_1', seq: 1 });
    if (url.pathname.endsWith('/runs')) {
      await held;
      return Response.json({ runs: log.length === 0 ? [] : [{ id: 'run_1', seq: log.at(-1)?.seq }] });
    }
    if (url.pathname.endsWith('/events')) {
      const after = Number(headers.get('last-event-id') ?? url.searchParams.get('after'));
      if (headers.get('accept') === 'text/event-stream') return stream(after);
      queueMicrotask(asked.fire);
      return Response.json({ events: seen().filter(({ seq }) => seq > after), nextCursor: null });
    }
    const [, approvalId = ''] = /^\/v1\/approvals\/(.+)$/.exec(url.pathname) ?? [];
    decided.push(approvalId);
    if (!refused.has(approvalId)) return Response.json({ approvalId });
    const problem = { status: 403, code: 'NOT_AN_APPROVER', detail: 'others decide on this call' };
    return Response.json(problem, { status: 403 });
  };
  return {
    spaceId,
    decided,
    isAsked: asked.fired,
    connect: () =>
      new ToolgateClient({
        url: 'http://gateway.test',
        key: 'sk_test',
        fetch: (url, init) => answer(new URL(String(url)), init ?? {}),
      }),
    tell: (...events) => {
      log.push(...events);
      for (const open of streams) open.enqueue(bytes(events));
    },
    cut: () => {
      isAway = true;
      for (const open of streams) open.error(new TypeError('terminated'));
      streams.clear();
    },
    letIn: () => {
      isAway = false;
    },
    stopAt: (seq) => {
      end = seq;
    },
    goOn: () => onward.fire(),
    holdRuns: () => {
      held = onward.fired;
    },
    refuse: (approvalId) => void refused.add(approvalId),
  };
}

function signal(): { readonly fired: Promise<void>; readonly fire: () => void } {
  let fire = (): void => {};
  const fired = new Promise<void>((resolve) => {
    fire = resolve;
  });
  return { fired, fire };
}
