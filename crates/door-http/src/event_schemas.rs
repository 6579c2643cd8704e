//! The events as the document describes them, one component each. A test holds the table against the kernel.

use serde_json::{Map, Value, json};

/// What a member holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Whole,
    Flag,
    Any,
    /// A component of this name.
    A(&'static str),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of a component.
    Some(&'static str),
}
use Holds::{A, Any, Flag, Some as Several, Text, Whole, Words};

/// A member: its name, what it holds, whether it is always there.
type Member = (&'static str, Holds, bool);

const ALWAYS: bool = true;
const MAYBE: bool = false;

/// What every event carries.
const COMMON: &[Member] = &[
    ("seq", Whole, ALWAYS),
    ("spaceId", A("SpaceId"), ALWAYS),
    ("runId", A("RunId"), MAYBE),
    ("time", A("Time"), ALWAYS),
];

/// What every event of a tool carries.
const TOOL: &[Member] = &[
    ("toolCallId", A("CallId"), ALWAYS),
    ("toolName", Text, ALWAYS),
    ("placement", A("Placement"), ALWAYS),
    ("shown", Flag, MAYBE),
    ("offeredTo", A("EntityId"), MAYBE),
    ("givenName", Text, MAYBE),
    // Of a call of a child run, which is answered here.
    ("agent", A("AgentName"), MAYBE),
    ("childRunId", A("RunId"), MAYBE),
];

const FINISH: Holds = Words(&["stop", "length", "content-filter", "tool-calls", "error", "other"]);
const END: Holds = Words(&[
    "stop",
    "length",
    "content-filter",
    "max-steps",
    "limit",
    "model-error",
    "invalid-output",
    "tool-error",
    "cancelled",
]);
const CODE: Holds = Words(&[
    "NOT_FOUND",
    "VALIDATION_FAILED",
    "PREREQUISITES_NOT_MET",
    "PERMISSION_DENIED",
    "LIMIT_EXCEEDED",
    "DENIED",
    "TIMEOUT",
    "CANCELLED",
    "SUPERSEDED",
    "EXECUTION_FAILED",
    "INTERRUPTED",
    "UNAVAILABLE",
    "INVALID_OUTPUT",
]);

/// Every event: its type, whether it speaks of a tool, what it adds.
const EVENTS: &[(&str, bool, &[Member])] = &[
    (
        "run-start",
        false,
        &[
            ("agent", A("AgentName"), ALWAYS),
            ("revision", Whole, ALWAYS),
            ("model", Any, ALWAYS),
            ("entity", A("EntityId"), MAYBE),
            ("parent", A("CallId"), MAYBE),
            ("depth", Whole, ALWAYS),
            ("clientTools", Several("ClientTool"), MAYBE),
            ("behind", Text, MAYBE),
            ("budget", Any, MAYBE),
            ("unknownRequester", Flag, MAYBE),
            ("offeredTo", A("EntityId"), MAYBE),
            ("givenName", Text, MAYBE),
            ("resultSchema", Any, MAYBE),
            ("categories", Any, MAYBE),
            ("history", Any, MAYBE),
            ("tools", Any, ALWAYS),
            ("toolVersions", Any, MAYBE),
        ],
    ),
    ("message", false, &[("message", A("Message"), ALWAYS)]),
    (
        "history",
        false,
        &[("turns", Any, ALWAYS), ("from", A("EntityId"), MAYBE)],
    ),
    (
        "call-request",
        false,
        &[
            ("toolName", Text, ALWAYS),
            ("input", Any, MAYBE),
            ("from", A("EntityId"), MAYBE),
            ("sender", Any, MAYBE),
        ],
    ),
    (
        "context-cut",
        false,
        &[
            ("agent", A("AgentName"), ALWAYS),
            ("from", Whole, ALWAYS),
            ("told", Whole, MAYBE),
            ("resultBytes", Whole, MAYBE),
            ("summary", Text, MAYBE),
            ("usage", A("Usage"), MAYBE),
        ],
    ),
    ("step-start", false, &[("step", Whole, ALWAYS)]),
    (
        "step-retry",
        false,
        &[
            ("step", Whole, ALWAYS),
            ("attempt", Whole, ALWAYS),
            ("error", Text, MAYBE),
            ("notBefore", A("Time"), ALWAYS),
        ],
    ),
    ("text-start", false, &[("id", Text, ALWAYS)]),
    (
        "text-delta",
        false,
        &[("id", Text, ALWAYS), ("delta", Text, ALWAYS)],
    ),
    ("text-end", false, &[("id", Text, ALWAYS), ("text", Text, ALWAYS)]),
    ("reasoning-start", false, &[("id", Text, ALWAYS)]),
    (
        "reasoning-delta",
        false,
        &[("id", Text, ALWAYS), ("delta", Text, ALWAYS)],
    ),
    (
        "reasoning-end",
        false,
        &[
            ("id", Text, ALWAYS),
            ("text", Text, ALWAYS),
            ("signature", Text, MAYBE),
        ],
    ),
    ("tool-input-start", true, &[]),
    ("tool-input-delta", true, &[("inputTextDelta", Text, ALWAYS)]),
    (
        "tool-input-available",
        true,
        &[
            ("input", Any, MAYBE),
            ("deadline", A("Time"), MAYBE),
            ("signature", Text, MAYBE),
            ("reserved", A("Claim"), MAYBE),
            ("consent", A("ConsentUse"), MAYBE),
        ],
    ),
    (
        "tool-approval-request",
        true,
        &[
            ("approvalId", A("ApprovalId"), ALWAYS),
            ("input", Any, MAYBE),
            ("expiresAt", A("Time"), ALWAYS),
            ("terms", Any, MAYBE),
            ("voice", A("SpokenText"), MAYBE),
            ("mayDecide", Flag, MAYBE),
            ("editable", Flag, MAYBE),
        ],
    ),
    (
        "tool-approval-response",
        true,
        &[
            ("approvalId", A("ApprovalId"), ALWAYS),
            ("approved", Flag, ALWAYS),
            ("reason", Text, MAYBE),
            ("input", Any, MAYBE),
            ("by", A("EntityId"), MAYBE),
            ("expired", Flag, MAYBE),
            ("deadline", A("Time"), MAYBE),
            ("reserved", A("Claim"), MAYBE),
            ("inputHash", Text, MAYBE),
            ("remembered", Flag, MAYBE),
        ],
    ),
    (
        "tool-question",
        true,
        &[
            ("questionId", A("QuestionId"), ALWAYS),
            ("key", Text, MAYBE),
            ("message", Text, ALWAYS),
            ("schema", Any, MAYBE),
            ("url", Text, MAYBE),
            ("expiresAt", A("Time"), ALWAYS),
        ],
    ),
    (
        "tool-question-response",
        true,
        &[
            ("questionId", A("QuestionId"), ALWAYS),
            ("action", Words(&["accept", "decline", "cancel"]), ALWAYS),
            ("content", Any, MAYBE),
            ("by", A("EntityId"), MAYBE),
            ("expired", Flag, MAYBE),
        ],
    ),
    (
        "tool-sampling",
        true,
        &[("number", Whole, ALWAYS), ("usage", A("Usage"), ALWAYS)],
    ),
    (
        "tool-executing",
        true,
        &[
            ("claim", A("Claim"), MAYBE),
            ("child", A("RunId"), MAYBE),
            ("pause", Any, MAYBE),
            ("task", Any, MAYBE),
            ("childStatus", Any, MAYBE),
        ],
    ),
    ("tool-released", true, &[]),
    ("tool-progress", true, &[("progress", Any, MAYBE)]),
    (
        "tool-output-available",
        true,
        &[
            ("output", Any, MAYBE),
            ("warning", Text, MAYBE),
            ("log", Text, MAYBE),
            ("voice", A("SpokenText"), MAYBE),
        ],
    ),
    (
        "tool-output-error",
        true,
        &[
            ("code", CODE, MAYBE),
            ("errorText", Text, MAYBE),
            ("log", Text, MAYBE),
        ],
    ),
    ("tool-output-denied", true, &[("reason", Text, MAYBE)]),
    (
        "step-finish",
        false,
        &[
            ("step", Whole, ALWAYS),
            ("reason", FINISH, ALWAYS),
            ("usage", A("Usage"), ALWAYS),
        ],
    ),
    ("run-status", false, &[("status", A("Status"), ALWAYS)]),
    (
        "run-finish",
        false,
        &[
            ("status", A("Status"), ALWAYS),
            ("reason", END, ALWAYS),
            ("usage", A("Usage"), ALWAYS),
            ("error", Text, MAYBE),
        ],
    ),
    (
        "notification",
        false,
        &[
            ("title", Text, ALWAYS),
            ("body", Text, MAYBE),
            ("messageId", A("MessageId"), MAYBE),
        ],
    ),
];

/// The components: `Event`, one of many, and each of the many.
pub(crate) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut names = Vec::new();
    let mut mapping = Map::new();
    for (kind, tool, own) in EVENTS {
        let name = component_name(kind);
        let mut members = vec![("type", Words(std::slice::from_ref(kind)), ALWAYS)];
        members.extend(if *tool { TOOL } else { &[] });
        members.extend(*own);
        members.extend(COMMON);
        schemas.insert(name.clone(), object(&members));
        let place = format!("#/components/schemas/{name}");
        mapping.insert((*kind).to_owned(), place.clone().into());
        names.push(json!({ "$ref": place }));
    }
    schemas.insert(
        "Event".into(),
        json!({
            "description": "Something that happened in a run or a space. A type that you do not know is to be skipped.",
            "oneOf": names,
            "discriminator": { "propertyName": "type", "mapping": mapping },
        }),
    );
    schemas.insert("Message".into(), message());
    schemas.insert("SpokenText".into(), spoken_text());
    schemas.insert("ConsentUse".into(), consent_use());
    schemas
}

/// `text-delta` is `TextDeltaEvent`.
fn component_name(kind: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    kind.split('-').map(capital).collect::<String>() + "Event"
}

fn object(members: &[Member]) -> Value {
    let properties: Map<String, Value> = members
        .iter()
        .map(|(name, holds, _)| ((*name).to_owned(), schema(*holds)))
        .collect();
    let required: Vec<&str> = members
        .iter()
        .filter(|(_, _, always)| *always)
        .map(|(name, ..)| *name)
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn schema(holds: Holds) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match holds {
        Text => json!({ "type": "string" }),
        Whole => json!({ "type": "integer", "minimum": 0 }),
        Flag => json!({ "type": "boolean" }),
        Any => json!({}),
        A(name) => reference(name),
        Words(words) => json!({ "type": "string", "enum": words }),
        Several(name) => json!({ "type": "array", "items": reference(name) }),
    }
}

fn spoken_text() -> Value {
    json!({
        "description": "What is said aloud of a call, as far as the reader may know it.",
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "plain": {
                "description": "What is said to those who may not see what the variables hold; for backends.",
                "type": "string",
            },
            "from": {
                "description": "The variables that the text speaks; for backends.",
                "type": "array", "items": { "type": "string" },
            },
        },
        "required": ["text"],
    })
}

fn consent_use() -> Value {
    json!({
        "description": "The remembered yes that a call runs by.",
        "type": "object",
        "properties": {
            "consentId": { "type": "string" },
            "by": schema(A("EntityId")),
            "givenAt": schema(A("Time")),
        },
        "required": ["consentId", "givenAt"],
    })
}

fn message() -> Value {
    json!({
        "description": "What a person, a backend or a plan wrote into a space.",
        "type": "object",
        "properties": {
            "messageId": schema(A("MessageId")),
            "from": schema(A("EntityId")),
            "sender": {
                "description": "What was known of the sender; for backends.",
                "type": "object",
                "properties": { "name": { "type": "string" }, "timeZone": { "type": "string" } },
            },
            "parts": { "type": "array", "items": { "oneOf": [schema(A("TextPart")), schema(A("ImagePart"))] } },
            "metadata": {},
            "origin": {
                "description": "What posted it, where no user and no backend did: never to be shown as a user's words.",
                "type": "object",
                "properties": {
                    "type": { "type": "string", "enum": ["plan"] },
                    "planId": { "type": "string" },
                    "dueAt": schema(A("Time")),
                },
                "required": ["type", "planId", "dueAt"],
            },
            "onBehalfOf": {
                "description": "Who asked for the plan that posted it, or wrote to the run above.",
                "type": "array", "items": schema(A("EntityId")),
            },
        },
        "required": ["messageId", "parts"],
    })
}
