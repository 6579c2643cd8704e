//! What the JSON Schemas of tools may be.

/// The types of JSON Schema.
pub const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];

/// Limits of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of its text.
    pub bytes: usize,
    /// Most schemas around a schema; what stands in `properties`, `items`, `anyOf` and their like is one deeper.
    pub depth: usize,
    /// Most members of one `properties`.
    pub properties: usize,
    /// Most patterns, in `pattern` and `patternProperties` together.
    pub patterns: usize,
    /// Most memory of one compiled pattern.
    pub pattern_program_bytes: usize,
    /// Most schemas that are tried on one value when every `$ref` is followed. Zero forbids `$ref`.
    pub expansion: usize,
}

impl Limits {
    /// Limits of schemas in configurations, plugins and MCP servers.
    pub const TRUSTED: Self = Self {
        bytes: 64 * 1024,
        depth: 32,
        properties: 1_024,
        patterns: 64,
        pattern_program_bytes: 1024 * 1024,
        expansion: 10_000,
    };
    /// Limits of schemas in a request.
    pub const CLIENT: Self = Self {
        bytes: 16 * 1024,
        depth: 5,
        properties: 20,
        patterns: 10,
        pattern_program_bytes: 256 * 1024,
        expansion: 0,
    };
}
