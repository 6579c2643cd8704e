// An MCP server that changes its tools, dies, asks and waits when it is told to.
// `node mcp-test-server.js [modern | legacy | strict]` over stdio, or `http` at a free port of the loopback address.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [, , mode = 'modern', diary] = process.argv;
const note = (line) => diary && appendFileSync(diary, `${line}\n`);
const say = (text) => ({ content: [{ type: 'text', text }] });
// A helper that outlives what started it, unless it is killed.
const helper = mode === 'http' ? undefined : spawn('sleep', ['1000'], { stdio: 'ignore' });
helper?.unref();
note(`started ${process.pid} ${helper?.pid}`);

let swapped = false;
let notify = () => {};

const person = z.object({ name: z.string().min(1), age: z.number().int().min(0) });
const question = () =>
  inputRequired({
    inputRequests: { person: inputRequired.elicit({ message: 'Who are you?', requestedSchema: person }) },
  });

function make() {
  const server = new McpServer(
    { name: 'test', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  );
  const tool = (name, execute, inputSchema = z.object({})) =>
    server.registerTool(name, { description: `The tool ${name}.`, inputSchema }, execute);
  const before = tool('before', () => say('before'));
  const after = tool('after', () => say('after'), z.object({ deep: deepSchema(8) }));
  if (swapped) before.disable();
  else after.disable();
  tool('swap', () => {
    swapped = true;
    before.disable();
    after.enable();
    notify();
    return say('swapped');
  });
  tool('die', () => {
    note('dying');
    process.exit(1);
  });
  tool('ask', (_, { mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, 'person', person);
    if (answer) return say(`${answer.name} is ${answer.age}`);
    const { person: given } = mcpReq.inputResponses ?? {};
    return given ? say(`no answer: ${given.action}`) : question();
  });
  tool('ask-forever', question);
  tool('ask-model', () => {
    const ask = { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 1 };
    return inputRequired({ inputRequests: { model: inputRequired.createMessage(ask) } });
  });
  tool('wait', async (_, { mcpReq }) => {
    note('waiting');
    const params = { progressToken: mcpReq._meta?.progressToken, progress: 1, message: 'waiting' };
    await mcpReq.notify({ method: 'notifications/progress', params });
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve, { once: true }));
    note('cancelled');
    return say('cancelled');
  });
  return server;
}

function deepSchema(levels) {
  return levels === 0 ? z.string() : z.object({ inner: deepSchema(levels - 1) });
}

if (mode === 'modern') {
  serveStdio(make);
} else if (mode === 'http') {
  const handler = createMcpHandler(make);
  notify = () => handler.notify.toolsChanged();
  createServer(async (request, response) => {
    const { method, headers } = request;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {};
    const url = `http://${headers.host}${request.url}`;
    const answer = await handler.fetch(new Request(url, { method, headers, signal: gone.signal, ...body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (!answer.body) return response.end();
    response.flushHeaders();
    Readable.fromWeb(answer.body)
      .on('error', () => response.destroy())
      .pipe(response);
  }).listen(Number(process.env.PORT ?? 0), '127.0.0.1', function listening() {
    console.log(`listening at http://127.0.0.1:${this.address().port}/mcp`);
  });
} else {
  const transport = new StdioServerTransport();
  await make().connect(transport);
  if (mode === 'strict') {
    // As servers of some older packages do at any request before `initialize`.
    const { onmessage } = transport;
    transport.onmessage = (message, extra) =>
      message.method === 'server/discover' ? process.exit(1) : onmessage?.(message, extra);
  }
}
