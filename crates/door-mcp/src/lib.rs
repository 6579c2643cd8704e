//! The project's tools, files and agents for MCP clients.
