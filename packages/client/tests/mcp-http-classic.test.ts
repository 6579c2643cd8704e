import { describe, vi } from 'vitest';
import { httpSuite } from './mcp-http-suite.js';

// As it is where only the older package is installed.
vi.mock('@modelcontextprotocol/client', () => {
  throw new Error('not installed');
});

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

describe('the MCP bridge on @modelcontextprotocol/sdk 1.x, with a server behind a URL', () =>
  httpSuite('legacy'));
