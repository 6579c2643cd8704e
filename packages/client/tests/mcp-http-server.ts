import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { afterwards } from './world.js';

/** A server behind an address, in a process of its own. */
export interface HttpServer {
  url: string;
  /** Kills it. */
  stop(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts `node ...args` with `PORT`, and waits until it listens. */
export async function startHttp(args: string[], port: number): Promise<HttpServer> {
  const env = { ...process.env, PORT: String(port) };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  afterwards(stop);
  await new Promise<void>((resolve, reject) => {
    const heard = (piece: Buffer): void => {
      if (/listening/i.test(String(piece))) resolve();
    };
    child.stdout.on('data', heard);
    child.stderr.on('data', heard);
    gone.then(() => reject(new Error(`the server ended before it listened: ${args.join(' ')}`)));
  });
  return { url: `http://127.0.0.1:${port}/mcp`, stop };
}
