import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { AuthorizationServer, Grant } from './authorization-server.ts';
import { listen } from './listen.ts';

const METADATA = '/.well-known/oauth-protected-resource/mcp';

/** An MCP server, made with the official SDK, that wants a token of the authorization server. Its tool says whose. */
export async function startProtectedServer(
  authorization: AuthorizationServer,
): Promise<{ url: string; stop(): Promise<void> }> {
  const place = await listen();
  const url = `${place.url}/mcp`;
  place.answer(async (request, response) => {
    const json = (status: number, body: unknown, headers = {}) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(JSON.stringify(body));
    if (request.url === METADATA) {
      json(200, {
        resource: url,
        authorization_servers: [authorization.issuer],
        scopes_supported: ['tools'],
      });
      return;
    }
    if (request.url !== '/mcp') {
      json(404, {});
      return;
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    const grant = token === undefined ? undefined : await authorization.check(token, url);
    if (!grant?.scopes.includes('tools')) {
      const challenge = `Bearer resource_metadata="${place.url}${METADATA}", scope="tools"`;
      json(401, { error: 'invalid_token' }, { 'www-authenticate': challenge });
      return;
    }
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await serverFor(grant).connect(transport);
    await transport.handleRequest(request, response);
  });
  return { url, stop: place.stop };
}

function serverFor(grant: Grant): McpServer {
  const server = new McpServer({ name: 'protected', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Says who is signed in.' }, () => ({
    content: [{ type: 'text', text: `signed in as ${grant.subject}` }],
  }));
  return server;
}
