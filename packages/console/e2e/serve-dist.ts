import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname } from 'node:path';

/** The policy that the gateway sends with the console; the tests hold the built files to it. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; manifest-src 'self'; worker-src 'self'";

const DIST = new URL('../dist/', import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
const API = /^\/(v1|api|mcp|a2a|healthz|readyz|metrics|openapi\.json)(\/|\?|$)/;

export interface DistServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Serves the built console in front of a gateway, as the gateway itself does. */
export async function serveDist(gateway: string): Promise<DistServer> {
  const server = createServer((incoming, response) => {
    if (API.test(incoming.url ?? '')) pass(gateway, incoming, response);
    else file(incoming.url ?? '/', response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function pass(gateway: string, incoming: IncomingMessage, response: ServerResponse): void {
  const { host, port } = new URL(gateway);
  const outgoing = request(
    {
      host: host.split(':')[0],
      port,
      path: incoming.url,
      method: incoming.method,
      headers: incoming.headers,
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    },
  );
  // A gateway that is away is a broken connection, as it would be without this server.
  outgoing.on('error', () => incoming.socket.destroy());
  response.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

async function file(url: string, response: ServerResponse): Promise<void> {
  const path = new URL(url, 'http://console').pathname.slice(1);
  const found = await readFile(new URL(path || 'index.html', DIST)).catch(() => undefined);
  const body = found ?? (await readFile(new URL('index.html', DIST)));
  const type = TYPES[found ? extname(path || 'index.html') : '.html'] ?? 'application/octet-stream';
  response.writeHead(200, {
    'content-type': type,
    'content-security-policy': CONTENT_SECURITY_POLICY,
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}
