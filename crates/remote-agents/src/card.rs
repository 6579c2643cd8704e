//! The card of a remote agent: how it is found, what is kept of it, and the definition that a tool has by it.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_a2a::CARD_PATH;
use toolgate_a2a::card::{AgentCard, Interface, SecurityScheme};
use toolgate_egress::{BodyLimit, Client, EgressError, Request};
use toolgate_kernel::tool::CHILD_TIMEOUT;
use url::Url;

use crate::endpoint::Endpoint;

/// Largest card.
const CARD_BYTES_MAX: usize = 512 << 10;
/// Path of the card on servers of the first versions.
const CARD_PATH_02: &str = "/.well-known/agent.json";
/// Most skills and interfaces that are kept of a card.
const SKILLS_MAX: usize = 20;
const INTERFACES_MAX: usize = 8;
/// Longest text that is kept of a card, in characters.
const TEXT_CHARS_MAX: usize = 1_000;
const WORD_CHARS_MAX: usize = 200;
/// Longest description of a tool, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Longest name of a tool.
const NAME_CHARS_MAX: usize = 64;
const NAME_WITHOUT_ONE: &str = "remote_agent";

/// What is kept of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KnownCard {
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub skills: Vec<KnownSkill>,
    pub interfaces: Vec<KnownInterface>,
    pub streams: bool,
    /// Whether the agent reads JSON in data parts.
    pub reads_json: bool,
    /// How callers say who they are, in words.
    #[serde(default)]
    pub credentials: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownSkill {
    pub id: String,
    pub name: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownInterface {
    pub url: String,
    pub binding: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Why a card is not there, in words.
pub(crate) type NoCard = String;

/// Fetches the card of the agent at `url`, which is the address of the agent or of the card itself.
pub(crate) async fn fetch(client: &Client, url: &Url, headers: &HeaderMap) -> Result<KnownCard, NoCard> {
    if url.path().ends_with(".json") {
        return read(get(client, url.clone(), headers).await?);
    }
    for path in [CARD_PATH, CARD_PATH_02] {
        let mut address = url.clone();
        address.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        let answer = get(client, address, headers).await?;
        if answer.0 != StatusCode::NOT_FOUND {
            return read(answer);
        }
    }
    Err(format!("there is no card at {CARD_PATH} under its address"))
}

async fn get(client: &Client, url: Url, headers: &HeaderMap) -> Result<(StatusCode, Vec<u8>), NoCard> {
    let mut request = Request::get(url, BodyLimit::Whole(CARD_BYTES_MAX));
    request.headers = headers.clone();
    let accept = HeaderValue::from_static("application/json");
    request.headers.insert(header::ACCEPT, accept);
    let answer = client.send(request).await;
    let answer = answer.map_err(|error: EgressError| format!("its card cannot be fetched: {error}"))?;
    Ok((answer.status, answer.body))
}

fn read((status, body): (StatusCode, Vec<u8>)) -> Result<KnownCard, NoCard> {
    if !status.is_success() {
        return Err(format!(
            "its card cannot be fetched: it answered {}",
            status.as_u16()
        ));
    }
    let card: Value = serde_json::from_slice(&body).map_err(|_| "its card is not JSON".to_owned())?;
    let card = AgentCard::from_json(card)
        .map_err(|invalid| cut(&format!("its card is not valid: {invalid}"), TEXT_CHARS_MAX))?;
    Ok(KnownCard::of(card))
}

impl KnownCard {
    fn of(card: AgentCard) -> Self {
        let text = |text: &str| cut(text.trim(), TEXT_CHARS_MAX);
        let word = |text: &str| cut(text.trim(), WORD_CHARS_MAX);
        let skills = card.skills.iter().take(SKILLS_MAX).map(|skill| KnownSkill {
            id: word(&skill.id),
            name: word(&skill.name),
            description: word(&skill.description),
        });
        let interfaces = card
            .interfaces
            .iter()
            .take(INTERFACES_MAX)
            .map(|interface| KnownInterface {
                url: text(&interface.url),
                binding: text(&interface.binding),
                version: text(&interface.version),
                tenant: interface.tenant.as_deref().map(text),
            });
        let reads_json = card.input_modes.iter().any(|mode| mode.contains("json"));
        let credentials = card
            .security_schemes
            .iter()
            .take(SKILLS_MAX)
            .map(|(name, scheme)| match scheme {
                SecurityScheme::Http { scheme, .. } => format!("Authorization: {}", text(scheme)),
                SecurityScheme::ApiKey { location, name, .. } => {
                    format!("the {} {}", text(location), text(name))
                }
                SecurityScheme::Other(_) => text(name),
            });
        Self {
            name: text(&card.name),
            description: text(&card.description),
            skills: skills.collect(),
            interfaces: interfaces.collect(),
            streams: card.capabilities.streaming,
            reads_json,
            credentials: credentials.collect(),
        }
    }

    /// Where the agent is spoken to.
    pub fn endpoint(&self, at: &Url) -> Result<Endpoint, String> {
        let interfaces: Vec<Interface> = self
            .interfaces
            .iter()
            .map(|known| Interface {
                url: known.url.clone(),
                binding: known.binding.clone(),
                version: known.version.clone(),
                tenant: known.tenant.clone(),
            })
            .collect();
        Endpoint::choose(&interfaces, self.streams, at)
    }

    fn skill(&self, id: Option<&str>) -> Option<&KnownSkill> {
        self.skills.iter().find(|skill| Some(skill.id.as_str()) == id)
    }

    /// Name and description of the tool for the agent, or for one skill of it.
    fn told(&self, skill: Option<&str>) -> (String, String) {
        if let Some(skill) = self.skill(skill) {
            let words = format!(
                "{} (of the remote agent {})",
                or(&skill.description, &skill.name),
                self.name
            );
            return (tool_name(&skill.id), words);
        }
        let mut words = or(&self.description, &self.name).to_owned();
        for skill in &self.skills {
            words.push_str(&format!("\n- {}: {}", skill.name, skill.description));
        }
        (tool_name(&self.name), words)
    }
}

/// The members of a tool's definition that hold where its author says nothing else.
pub(crate) fn usual(card: Option<&KnownCard>, skill: Option<&str>, url: &Url) -> Value {
    let (name, description) = match card {
        Some(card) => card.told(skill),
        // Until the card is known, which it is before an agent without a description is stored.
        None => {
            let host = url.host_str().unwrap_or_default();
            (
                tool_name(skill.unwrap_or(host)),
                format!("A remote agent at {host}."),
            )
        }
    };
    json!({
        "name": name,
        "description": cut(&description, DESCRIPTION_CHARS_MAX),
        "parameters": {
            "type": "object",
            "properties": {"message": {
                "type": "string",
                "description": "What the remote agent is asked or told, complete in itself: it sees nothing of this conversation.",
            }},
            "required": ["message"],
        },
        "timeout": CHILD_TIMEOUT.as_secs(),
        "retry": "never",
    })
}

/// A name that models accept, made of a text for people.
fn tool_name(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => name.push(letter.to_ascii_lowercase()),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_matches(|c| c == '_' || c == '-');
    let name: String = name.chars().take(NAME_CHARS_MAX - 1).collect();
    match name.chars().next() {
        None => NAME_WITHOUT_ONE.into(),
        Some(first) if first.is_ascii_alphabetic() => name,
        Some(_) => format!("_{name}"),
    }
}

fn or<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

/// The first characters of a text.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let start: String = text.chars().take(chars_max - 1).collect();
            format!("{start}…")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> KnownCard {
        let card = json!({
            "name": "Weather & Tides", "description": "Knows the sea.", "version": "1",
            "supportedInterfaces": [{"url": "https://a.test/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": true},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "tides-2", "name": "Tides", "description": "When the water comes.", "tags": []}],
        });
        KnownCard::of(AgentCard::from_json(card).unwrap())
    }

    #[test]
    fn a_tool_is_named_and_described_by_its_card() {
        let url = "https://a.test".parse().unwrap();
        let whole = usual(Some(&card()), None, &url);
        assert_eq!(whole["name"], "weather_tides");
        assert_eq!(
            whole["description"],
            "Knows the sea.\n- Tides: When the water comes."
        );
        let one = usual(Some(&card()), Some("tides-2"), &url);
        assert_eq!(one["name"], "tides-2");
        assert_eq!(
            one["description"],
            "When the water comes. (of the remote agent Weather & Tides)"
        );
        assert_eq!(usual(None, None, &url)["name"], "a_test");
    }

    #[test]
    fn every_text_makes_a_name_that_models_accept() {
        for text in [
            "",
            "  ",
            "Wetter für Köln!",
            "9 lives",
            "--",
            "日本",
            &"x".repeat(200),
            "_a",
            "a__b",
        ] {
            let name = tool_name(text);
            let parsed = name.parse::<toolgate_kernel::name::ToolName>();
            assert!(parsed.is_ok(), "{text:?} became {name:?}");
        }
    }
}
