//! What tools a request may bring.

use anyhow::ensure;
use serde::Deserialize;
use toolgate_engine::RESULT_BYTES_UNCHECKED;
use toolgate_kernel::schema::Limits;
use toolgate_kernel::tool::{self, ClientToolLimits, KeyKind};

/// Tools that requests bring.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientTools {
    /// Most tools in one request with a secret key.
    pub tools_max: usize,
    /// Most tools in one request with a public key.
    pub public_tools_max: usize,
    /// Most bytes of all of them together.
    pub bytes_max: usize,
    /// Most bytes of the result of one call.
    pub result_bytes_max: usize,
    /// What becomes of one that has the name of one of the agent's.
    pub conflict: Conflict,
    /// What their schemas may be.
    pub schema: Schema,
}

impl Default for ClientTools {
    fn default() -> Self {
        let ClientToolLimits {
            tools,
            public_tools,
            bytes,
            result_bytes,
            ..
        } = ClientToolLimits::default();
        Self {
            tools_max: tools,
            public_tools_max: public_tools,
            bytes_max: bytes,
            result_bytes_max: result_bytes,
            conflict: Conflict::Error,
            schema: Schema::default(),
        }
    }
}

/// What becomes of a tool that has the name of one of the agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conflict {
    /// The request is refused.
    Error,
    /// It is called `client_<name>`.
    Prefix,
    /// It is left out.
    KeepTrusted,
}

impl From<Conflict> for tool::Conflict {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Error => Self::Error,
            Conflict::Prefix => Self::Prefix,
            Conflict::KeepTrusted => Self::KeepTrusted,
        }
    }
}

/// What the schema of such a tool may be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schema {
    /// Most bytes.
    pub bytes_max: usize,
    /// Most schemas around a schema.
    pub depth_max: usize,
    /// Most properties of one object.
    pub properties_max: usize,
    /// Most patterns.
    pub patterns_max: usize,
    /// Most memory of one compiled pattern.
    pub pattern_bytes_max: usize,
}

impl Default for Schema {
    fn default() -> Self {
        let Limits {
            bytes,
            depth,
            properties,
            patterns,
            pattern_program_bytes,
            ..
        } = Limits::CLIENT;
        Self {
            bytes_max: bytes,
            depth_max: depth,
            properties_max: properties,
            patterns_max: patterns,
            pattern_bytes_max: pattern_program_bytes,
        }
    }
}

impl ClientTools {
    /// As the engine takes them. Nobody is trusted more than the author of an agent.
    pub fn limits(&self) -> anyhow::Result<ClientToolLimits> {
        let schema = &self.schema;
        let trusted = Limits::TRUSTED;
        for (name, set, most) in [
            ("bytes_max", schema.bytes_max, trusted.bytes),
            ("depth_max", schema.depth_max, trusted.depth),
            ("properties_max", schema.properties_max, trusted.properties),
            ("patterns_max", schema.patterns_max, trusted.patterns),
            (
                "pattern_bytes_max",
                schema.pattern_bytes_max,
                trusted.pattern_program_bytes,
            ),
        ] {
            ensure!(
                set <= most,
                "the setting `client_tools.schema.{name}` is {set}; at most {most} is possible, as for an agent's own tools"
            );
        }
        let (set, least) = (self.result_bytes_max, RESULT_BYTES_UNCHECKED);
        ensure!(
            set >= least,
            "the setting `client_tools.result_bytes_max` is {set}; at least {least} is possible"
        );
        Ok(ClientToolLimits {
            tools: self.tools_max,
            public_tools: self.public_tools_max,
            key: KeyKind::Secret,
            bytes: self.bytes_max,
            result_bytes: self.result_bytes_max,
            schema: Limits {
                bytes: schema.bytes_max,
                depth: schema.depth_max,
                properties: schema.properties_max,
                patterns: schema.patterns_max,
                pattern_program_bytes: schema.pattern_bytes_max,
                ..Limits::CLIENT
            },
        })
    }
}
