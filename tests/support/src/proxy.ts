import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A plain TCP relay in front of a gateway, for cutting connections. */
export interface CuttableProxy {
  url: string;
  /** Connections that were made so far. */
  connections(): number;
  /** Breaks every open connection; new ones are relayed again. */
  cut(): void;
  stop(): Promise<void>;
}

/** Relays to the server at `url` until it is stopped. */
export async function startProxy(url: string): Promise<CuttableProxy> {
  const target = new URL(url);
  const open = new Set<Socket>();
  let count = 0;
  const server = createServer((near) => {
    count += 1;
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => count,
    cut,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}
