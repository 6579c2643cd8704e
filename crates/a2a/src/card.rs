//! Agent cards: what an agent is, where it is reached and how.

mod security;

use serde_json::{Map, Value, json};

use crate::json::{Invalid, Members, Object, Violations, parse};
use crate::{Metadata, VERSION_03};

pub use security::SecurityScheme;
use security::{read_requirement, requirement};

/// A card. Written in the form of 1.0, or as a hybrid that clients of 0.3 read too; read from either.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// What the agent does.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// Where it is reached, the preferred one first.
    pub interfaces: Vec<Interface>,
    /// What it can do beyond the least.
    pub capabilities: Capabilities,
    /// Media types that it takes.
    pub input_modes: Vec<String>,
    /// Media types that it answers with.
    pub output_modes: Vec<String>,
    /// What it is good at.
    pub skills: Vec<Skill>,
    /// Who runs it.
    pub provider: Option<Provider>,
    /// Where it is described.
    pub documentation_url: Option<String>,
    /// A picture of it.
    pub icon_url: Option<String>,
    /// Ways to say who one is, by name.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Which of them are asked for: any one of these sets, by name, with scopes.
    pub security: Vec<Vec<(String, Vec<String>)>>,
    /// Signatures over the canonical JSON of the card without this member.
    pub signatures: Vec<Signature>,
}

/// Where an agent is reached by one binding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The base URL.
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC` or another.
    pub binding: String,
    /// Version of the protocol, like `1.0`.
    pub version: String,
    /// Tenant that requests must name.
    pub tenant: Option<String>,
}

/// What an agent can do beyond the least.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Capabilities {
    /// It streams.
    pub streaming: bool,
    /// It posts changes of tasks to webhooks.
    pub push_notifications: bool,
    /// It has an extended card.
    pub extended_card: bool,
    /// Extensions that it knows.
    pub extensions: Vec<Extension>,
}

/// An extension that an agent knows.
#[derive(Clone, PartialEq, Debug)]
pub struct Extension {
    /// Its URI.
    pub uri: String,
    /// How the agent uses it.
    pub description: Option<String>,
    /// Clients must use it.
    pub required: bool,
    /// Its settings.
    pub params: Option<Metadata>,
}

/// Something that an agent is good at.
#[derive(Clone, PartialEq, Debug)]
pub struct Skill {
    /// Its id within the card.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What one may ask.
    pub examples: Vec<String>,
    /// Media types that it takes, where they are not the agent's.
    pub input_modes: Vec<String>,
    /// Media types that it answers with, where they are not the agent's.
    pub output_modes: Vec<String>,
}

/// Who runs an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provider {
    /// Name of the organization.
    pub organization: String,
    /// Its site.
    pub url: String,
}

/// A JWS over a card, in the flattened form without a payload.
#[derive(Clone, PartialEq, Debug)]
pub struct Signature {
    /// The protected header, as base64url.
    pub protected: String,
    /// The signature, as base64url.
    pub signature: String,
    /// The unprotected header.
    pub header: Option<Metadata>,
}

impl AgentCard {
    /// Reads a card of 1.0, of 0.3, or one that is both.
    pub fn from_json(value: Value) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| {
            Self::read(Object::new(value, at, bad))
        })
    }

    /// Writes the card in the form of 1.0.
    pub fn to_json(&self) -> Value {
        self.members().value()
    }

    /// Writes the card in the form of 1.0 together with the members that clients of 0.3 read. Validators that know
    /// 1.0 alone reject them, so this is for agents that must be found by older clients.
    pub fn to_hybrid_json(&self) -> Value {
        let of_03 = |interface: &&Interface| interface.version.starts_with(VERSION_03);
        let Some(first) = self.interfaces.iter().find(of_03) else {
            return self.to_json();
        };
        let further = self
            .interfaces
            .iter()
            .filter(of_03)
            .map(|interface| json!({"url": interface.url, "transport": interface.binding}));
        let security = self.security.iter().map(|set| {
            let set = set.iter().map(|(name, scopes)| (name.clone(), json!(scopes)));
            Value::Object(set.collect())
        });
        self.members()
            .with("protocolVersion", "0.3.0")
            .with("url", first.url.as_str())
            .with("preferredTransport", first.binding.as_str())
            .with("additionalInterfaces", further.collect::<Vec<_>>())
            .with(
                "supportsAuthenticatedExtendedCard",
                self.capabilities.extended_card,
            )
            .with_list("security", security)
            .with_some("securitySchemes", self.schemes(SecurityScheme::to_hybrid_json))
            .value()
    }

    fn members(&self) -> Members {
        let list = |texts: &[String]| Value::from(texts.to_vec());
        let provider = self
            .provider
            .as_ref()
            .map(|provider| json!({"organization": provider.organization, "url": provider.url}));
        Members::new()
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("version", self.version.as_str())
            .with(
                "supportedInterfaces",
                self.interfaces.iter().map(Interface::to_json).collect::<Vec<_>>(),
            )
            .with("capabilities", self.capabilities.to_json())
            .with("defaultInputModes", list(&self.input_modes))
            .with("defaultOutputModes", list(&self.output_modes))
            .with(
                "skills",
                self.skills.iter().map(Skill::to_json).collect::<Vec<_>>(),
            )
            .with_some("provider", provider)
            .with_some("documentationUrl", self.documentation_url.as_deref())
            .with_some("iconUrl", self.icon_url.as_deref())
            .with_some("securitySchemes", self.schemes(SecurityScheme::to_json))
            .with_list(
                "securityRequirements",
                self.security.iter().map(|set| requirement(set)),
            )
            .with_list("signatures", self.signatures.iter().map(Signature::to_json))
    }

    fn schemes(&self, write: impl Fn(&SecurityScheme) -> Value) -> Option<Value> {
        let schemes = self.security_schemes.iter();
        let schemes: Map<_, _> = schemes
            .map(|(name, scheme)| (name.clone(), write(scheme)))
            .collect();
        (!schemes.is_empty()).then_some(Value::Object(schemes))
    }

    fn read(mut object: Object<'_>) -> Self {
        let mut interfaces = object.list("supportedInterfaces", Interface::read);
        if let Some(url) = object.text("url") {
            let version = object.text("protocolVersion");
            let binding = object.text("preferredTransport");
            add_interfaces_03(&mut object, &mut interfaces, url, binding, version);
        }
        if interfaces.is_empty() {
            object.bad("supportedInterfaces", "must name at least one interface");
        }
        let extended = object.flag("supportsAuthenticatedExtendedCard");
        let mut capabilities = object
            .inner("capabilities", Capabilities::read)
            .unwrap_or_default();
        capabilities.extended_card |= extended == Some(true);
        let security_schemes = object.metadata("securitySchemes").unwrap_or_default();
        let mut security = object.list("securityRequirements", read_requirement);
        if security.is_empty() {
            security = object.list("security", read_requirement);
        }
        Self {
            name: object.need_text("name"),
            description: object.text("description").unwrap_or_default(),
            version: object.text("version").unwrap_or_default(),
            interfaces,
            capabilities,
            input_modes: object.texts("defaultInputModes"),
            output_modes: object.texts("defaultOutputModes"),
            skills: object.list("skills", Skill::read),
            provider: object.inner("provider", Provider::read),
            documentation_url: object.text("documentationUrl"),
            icon_url: object.text("iconUrl"),
            security_schemes: security_schemes
                .into_iter()
                .map(|(name, scheme)| (name, SecurityScheme::of(scheme)))
                .collect(),
            security,
            signatures: object.list("signatures", Signature::read),
        }
    }
}

/// The interfaces that a card of 0.3 names. A hybrid card names them in both forms, and they count once.
fn add_interfaces_03(
    object: &mut Object<'_>,
    interfaces: &mut Vec<Interface>,
    url: String,
    binding: Option<String>,
    version: Option<String>,
) {
    let version = version.unwrap_or_else(|| "0.3.0".into());
    let version: Vec<_> = version.splitn(3, '.').take(2).collect();
    let version = version.join(".");
    let first = (url, binding.unwrap_or_else(|| "JSONRPC".into()));
    let further = object.list("additionalInterfaces", |value, at, bad| {
        let mut object = Object::new(value, at, bad);
        Some((object.need_text("url"), object.need_text("transport")))
    });
    for (url, binding) in std::iter::once(first).chain(further) {
        let is_known = interfaces
            .iter()
            .any(|known| known.url == url && known.binding == binding && known.version == version);
        if !is_known {
            interfaces.push(Interface {
                url,
                binding,
                version: version.clone(),
                tenant: None,
            });
        }
    }
}

impl Interface {
    fn to_json(&self) -> Value {
        Members::new()
            .with("url", self.url.as_str())
            .with("protocolBinding", self.binding.as_str())
            .with_some("tenant", self.tenant.as_deref())
            .with("protocolVersion", self.version.as_str())
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations) -> Option<Self> {
        let mut object = Object::new(value, at, bad);
        Some(Self {
            url: object.need_text("url"),
            binding: object.need_text("protocolBinding"),
            version: object
                .text("protocolVersion")
                .unwrap_or_else(|| crate::VERSION.into()),
            tenant: object.text("tenant").filter(|tenant| !tenant.is_empty()),
        })
    }
}

impl Capabilities {
    fn to_json(&self) -> Value {
        Members::new()
            .with("streaming", self.streaming)
            .with("pushNotifications", self.push_notifications)
            .with_list("extensions", self.extensions.iter().map(Extension::to_json))
            .with("extendedAgentCard", self.extended_card)
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations) -> Self {
        let mut object = Object::new(value, at, bad);
        Self {
            streaming: object.flag("streaming").unwrap_or_default(),
            push_notifications: object.flag("pushNotifications").unwrap_or_default(),
            extended_card: object.flag("extendedAgentCard").unwrap_or_default(),
            extensions: object.list("extensions", Extension::read),
        }
    }
}

impl Extension {
    fn to_json(&self) -> Value {
        Members::new()
            .with("uri", self.uri.as_str())
            .with_some("description", self.description.as_deref())
            .with("required", self.required)
            .with_some("params", self.params.clone())
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations) -> Option<Self> {
        let mut object = Object::new(value, at, bad);
        Some(Self {
            uri: object.need_text("uri"),
            description: object.text("description"),
            required: object.flag("required").unwrap_or_default(),
            params: object.metadata("params"),
        })
    }
}

impl Skill {
    fn to_json(&self) -> Value {
        Members::new()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("tags", self.tags.clone())
            .with_list("examples", self.examples.iter().cloned())
            .with_list("inputModes", self.input_modes.iter().cloned())
            .with_list("outputModes", self.output_modes.iter().cloned())
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations) -> Option<Self> {
        let mut object = Object::new(value, at, bad);
        Some(Self {
            id: object.need_text("id"),
            name: object.text("name").unwrap_or_default(),
            description: object.text("description").unwrap_or_default(),
            tags: object.texts("tags"),
            examples: object.texts("examples"),
            input_modes: object.texts("inputModes"),
            output_modes: object.texts("outputModes"),
        })
    }
}

impl Provider {
    fn read(value: Value, at: String, bad: &Violations) -> Self {
        let mut object = Object::new(value, at, bad);
        Self {
            organization: object.text("organization").unwrap_or_default(),
            url: object.text("url").unwrap_or_default(),
        }
    }
}

impl Signature {
    fn to_json(&self) -> Value {
        Members::new()
            .with("protected", self.protected.as_str())
            .with("signature", self.signature.as_str())
            .with_some("header", self.header.clone())
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations) -> Option<Self> {
        let mut object = Object::new(value, at, bad);
        Some(Self {
            protected: object.need_text("protected"),
            signature: object.need_text("signature"),
            header: object.metadata("header"),
        })
    }
}
