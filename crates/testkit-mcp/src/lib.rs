//! MCP servers for tests.
