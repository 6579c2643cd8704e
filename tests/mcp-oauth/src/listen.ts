import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Takes a free port of loopback; what answers there may be said later, when the address is known. */
export async function listen(): Promise<{
  url: string;
  answer(with_: RequestListener): void;
  stop(): Promise<void>;
}> {
  let listener: RequestListener = (_, response) => response.writeHead(503).end();
  const server: Server = createServer((request, response) => listener(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    answer: (with_) => {
      listener = with_;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
