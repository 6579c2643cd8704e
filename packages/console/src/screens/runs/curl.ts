import type { wire } from '@toolgate/client';

/** A command line for what the console shows. The key is a variable: no secret is ever copied. */
export function curlOf(
  what: 'start' | 'read' | 'events',
  origin: string,
  runId: string,
  events: readonly wire.Event[],
): string {
  const key = `-H "authorization: Bearer $TOOLGATE_SECRET_KEY"`;
  if (what === 'read') return `curl ${origin}/v1/runs/${runId} ${key}`;
  if (what === 'events')
    return `curl -N ${origin}/v1/runs/${runId}/events ${key} -H 'accept: text/event-stream'`;
  const { path, body } = requestOf(events);
  return [
    `curl ${origin}${path}`,
    key,
    `-H 'content-type: application/json'`,
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}

function requestOf(events: readonly wire.Event[]): { path: string; body: unknown } {
  const start = events.find((event) => event.type === 'run-start');
  const call = events.find((event) => event.type === 'call-request');
  if (call)
    return {
      path: `/v1/tools/${encodeURIComponent(call.toolName)}/call`,
      body: { agent: start?.agent, arguments: call.input ?? {} },
    };
  const message = events.find((event) => event.type === 'message');
  return { path: '/v1/runs', body: { agent: start?.agent, parts: message?.message.parts ?? [] } };
}

/** A text as one word of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
