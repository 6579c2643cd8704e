// The AI SDK's own agent behind its own chat route, with the bench's two tools; `echo` may be an MCP server's.
import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { serve } from '@hono/node-server';
import { ToolLoopAgent, createAgentUIStreamResponse, tool } from 'ai';
import { Hono } from 'hono';
import { z } from 'zod';

const [port, model, mcp] = process.argv.slice(2);
const stub = createOpenAICompatible({ name: 'stub', baseURL: model, apiKey: 'none', includeUsage: true });

const echo = tool({
  description: 'Echo the given text back.',
  inputSchema: z.object({
    text: z.string().min(1).max(200),
    count: z.number().int().min(0).max(100),
    tags: z.array(z.string()).max(10),
    options: z.object({ upper: z.boolean(), lang: z.enum(['en', 'de', 'fr']) }),
  }),
  execute: async input => input,
});
// Without `execute` the stream ends at the call, and the next request brings its output.
const ask_user = tool({
  description: 'Ask the user to choose.',
  inputSchema: z.object({ question: z.string(), choices: z.array(z.string()).min(1) }),
  outputSchema: z.object({ choice: z.string() }),
});
// Connected and listed once for the life of the process, as by the gateway.
const upstream = mcp ? await (await createMCPClient({ transport: { type: 'http', url: mcp } })).tools() : { echo };

const agent = new ToolLoopAgent({
  model: stub.chatModel('stub'),
  instructions: 'You are a helpful assistant.',
  tools: { ...upstream, ask_user },
});

const app = new Hono();
app.get('/healthz', context => context.text('ok'));
app.post('/api/chat', async context => {
  const { messages } = await context.req.json();
  return createAgentUIStreamResponse({ agent, uiMessages: messages, abortSignal: context.req.raw.signal });
});
serve({ fetch: app.fetch, port: Number(port), hostname: '127.0.0.1' });
