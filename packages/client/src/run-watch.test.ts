import { expect, test } from 'vitest';
import { ToolgateClient } from './client.js';

/** A gateway whose streams of runs end after what each of them says. */
function watched(streams: string[]) {
  const heard: string[] = [];
  return new Promise<string[]>((resolve) => {
    const client = new ToolgateClient({
      url: 'http://gateway',
      fetch: async () => {
        const body = streams.shift();
        if (body === undefined) {
          watch.close();
          resolve(heard);
          throw new TypeError('closed');
        }
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      },
    });
    const watch = client.runs.watch({
      onRun: ({ id, status }) => heard.push(`${id} ${status}`),
      onReset: () => heard.push('reset'),
      onConnection: (state) => heard.push(state),
    });
  });
}

test('rows are told as they change, and a reconnect says that some may have been missed', async () => {
  const first = 'event: run\ndata: {"id":"run_1","status":"running"}\n\n: heartbeat\n\n';
  const second = 'event: run\ndata: {"id":"run_1","status":"completed"}\n\nevent: reset\ndata: {}\n\n';
  expect(await watched([first, second])).toEqual([
    'live',
    'run_1 running',
    'cut',
    'live',
    'reset',
    'run_1 completed',
    'reset',
    'cut',
  ]);
});
