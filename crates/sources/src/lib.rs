//! Tools from elsewhere: the MCP servers of a project, as a tool source.
