//! What a client may send: the six types, each with the payload that says what is wanted. Everything that is wrong with a
//! message is told at once, with its place.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_engine::CallTool;
use toolgate_engine::intake::{Decision, Submission};
use toolgate_http::body;
use toolgate_http::problem::Refusal;
use toolgate_http::query::SEQ_MAX;
use toolgate_http::wire::{At, Members, Text, TextOr, Whole, Wire, Words, wire, words};
use toolgate_kernel::id::{ApprovalId, CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_tool_channel::ID_CHARS_MAX;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

const REASON_CHARS_MAX: usize = 2000;
const HOLDER_CHARS_MAX: usize = 128;
const LABEL_CHARS_MAX: usize = 256;
/// How long a claim holds when nobody says.
const LEASE_SECONDS_DEFAULT: u64 = 30;
/// Longest a claim holds without another word.
const LEASE_SECONDS_MAX: u64 = 600;
/// The members of a message.
const MEMBERS: [&str; 6] = ["type", "toolId", "payload", "timestamp", "id", "seq"];

/// Names no tool: for a client that knows a call or a proposal by its id alone. No tool has this name.
const ANY_TOOL: &str = "*";

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) struct Incoming {
    /// Name of the tool that the message is about, unless it leaves that open.
    pub tool: Option<String>,
    pub request: Request,
}

/// What a client wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    /// A decision on a proposal.
    Decide {
        approval: ApprovalId,
        decision: Decision,
        /// Whether a yes stands for later calls too; as the tool says when not given.
        remember: Option<bool>,
    },
    /// To execute a call, or to go on doing so.
    Claim {
        call: CallId,
        holder: String,
        lease: Duration,
    },
    /// To give a claimed call back.
    Release { call: CallId, holder: String },
    /// To tell how far a call is.
    Progress { call: CallId, progress: Json },
    /// To end a call.
    Submit { call: CallId, submission: Submission },
}

impl Request {
    /// The call that it is about.
    pub fn call(&self) -> CallId {
        match self {
            Self::Decide { approval, .. } => approval.call(),
            Self::Claim { call, .. }
            | Self::Release { call, .. }
            | Self::Progress { call, .. }
            | Self::Submit { call, .. } => *call,
        }
    }

    /// What its id names, in words.
    pub fn subject(&self) -> &'static str {
        match self {
            Self::Decide { .. } => "approval",
            Self::Claim { .. } | Self::Release { .. } | Self::Progress { .. } | Self::Submit { .. } => "call",
        }
    }
}

/// Refuses a message that is about another tool than its call: whoever reads along would be told of the wrong one, and the
/// sender means something else.
pub(crate) fn other_tool(named: &str, tool: &CallTool) -> Refusal {
    let words = format!(
        "must be {:?}, the tool of the call, and not {named:?}",
        &*tool.name
    );
    Refusal::invalid(vec![Problem::new("/toolId", words)])
}

/// The client's own name for a message, as far as it can be read: also of one that is wrong otherwise.
pub(crate) fn id_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        id: Option<Cow<'a, str>>,
    }
    let id = serde_json::from_str::<Named<'_>>(text).ok()?.id?;
    let fits = !id.is_empty() && id.chars().count() <= ID_CHARS_MAX;
    fits.then(|| id.into_owned())
}

/// Reads a message.
pub(crate) fn read(text: &str) -> Result<Incoming, Refusal> {
    body::read(text)
}

words! {
    /// The type of a message.
    MessageType {
        /// From the gateway alone.
        Proposed = "TOOL_PROPOSED",
        /// A yes.
        Accepted = "TOOL_ACCEPTED",
        /// A no.
        Rejected = "TOOL_REJECTED",
        /// Under way.
        Executing = "TOOL_EXECUTING",
        /// Done.
        Completed = "TOOL_COMPLETED",
        /// Failed.
        Error = "TOOL_ERROR",
    }
}
wire! {
    /// Accepts a proposal.
    AcceptPayload {
        /// Id of the approval.
        approval_id "approvalId": ApprovalId,
        /// The input to run with instead.
        input "input": Option<Json>,
        /// Whether the yes stands for later calls too, where the tool remembers one; `false`: only this once.
        remember "remember": Option<bool>,
        /// Its call; checked when given.
        tool_call_id "toolCallId": Option<CallId>,
        /// Its run; checked when given.
        run_id "runId": Option<RunId>,
    }
}
wire! {
    /// Rejects a proposal, or gives a claimed call back.
    RejectPayload {
        /// Id of the approval.
        approval_id "approvalId": Option<ApprovalId>,
        /// Why. The model is told.
        reason "reason": Option<Text<0, REASON_CHARS_MAX>>,
        /// The name that the call was claimed with.
        holder "holder": Option<Text<1, HOLDER_CHARS_MAX>>,
        /// The call; checked when an approval is given.
        tool_call_id "toolCallId": Option<CallId>,
        /// Its run; checked when given.
        run_id "runId": Option<RunId>,
    }
    exactly one of [approval_id "approvalId", holder "holder"]
}
wire! {
    /// Claims a call, or tells how far it is.
    ExecutingPayload {
        /// The call.
        tool_call_id "toolCallId": CallId,
        /// A name the client chose for itself.
        holder "holder": Option<Text<1, HOLDER_CHARS_MAX>>,
        /// How long the claim holds without another word.
        lease_seconds "leaseSeconds": Option<Whole<1, LEASE_SECONDS_MAX>>,
        /// Whatever the tool says of itself.
        progress "progress": Option<Json>,
        /// Its run; checked when given.
        run_id "runId": Option<RunId>,
    }
    exactly one of [holder "holder", progress "progress"]
}
wire! {
    /// The result of a call.
    CompletedPayload {
        /// The call.
        tool_call_id "toolCallId": CallId,
        /// What it gave.
        result "result": Json,
        /// Its run; checked when given.
        run_id "runId": Option<RunId>,
    }
}
wire! {
    /// The error of a call.
    ErrorPayload {
        /// The call.
        tool_call_id "toolCallId": CallId,
        /// Why.
        error "error": TextOr<ErrorWords>,
        /// Its run; checked when given.
        run_id "runId": Option<RunId>,
    }
}
wire! {
    /// Error of a tool that failed on the client.
    ErrorWords {
        /// Error message.
        message "message": Words,
        /// Its class.
        name "name": Option<Text<0, LABEL_CHARS_MAX>>,
        /// For programs.
        code "code": Option<Text<0, LABEL_CHARS_MAX>>,
    }
}

impl Wire for Incoming {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let members = Members::read(value, at, problems)?;
        // All members are read before the first failure counts, so that all problems are told.
        let tool = members.take::<Text<1, LABEL_CHARS_MAX>>("toolId", at, problems);
        members.take::<Whole<0, SEQ_MAX>>("timestamp", at, problems);
        members.take::<Option<Text<1, ID_CHARS_MAX>>>("id", at, problems);
        members.take::<Option<Whole<0, SEQ_MAX>>>("seq", at, problems);
        members.refuse_others(&MEMBERS, at, problems);
        let kind = members.take::<MessageType>("type", at, problems)?;
        let payloads = Payloads {
            members,
            at,
            problems,
        };
        let request = payloads.request(kind)?;
        let tool = tool.map(|name| name.0).filter(|name| name != ANY_TOOL);
        Some(Self { tool, request })
    }
    fn schema() -> RefOr<Schema> {
        toolgate_http::wire::component("ToolMessage")
    }
}

/// Reads the payload that a type has.
struct Payloads<'a, 'p> {
    members: Members<'a>,
    at: &'p At<'p>,
    problems: &'p mut Vec<Problem>,
}

impl Payloads<'_, '_> {
    fn request(mut self, kind: MessageType) -> Option<Request> {
        match kind {
            MessageType::Proposed => {
                let words = "is sent by the gateway alone; a client sends TOOL_ACCEPTED, TOOL_REJECTED, TOOL_EXECUTING, \
                             TOOL_COMPLETED or TOOL_ERROR";
                self.wrong("type", words);
                None
            }
            MessageType::Accepted => {
                let payload: AcceptPayload = self.payload()?;
                self.same(payload.approval_id.call(), payload.tool_call_id, payload.run_id)?;
                Some(Request::Decide {
                    approval: payload.approval_id,
                    decision: Decision::Approve(payload.input),
                    remember: payload.remember,
                })
            }
            MessageType::Rejected => self.reject(),
            MessageType::Executing => {
                let payload: ExecutingPayload = self.payload()?;
                let call = payload.tool_call_id;
                self.same(call, None, payload.run_id)?;
                let seconds = payload
                    .lease_seconds
                    .map_or(LEASE_SECONDS_DEFAULT, |seconds| seconds.0);
                Some(match (payload.holder, payload.progress) {
                    (Some(holder), _) => Request::Claim {
                        call,
                        holder: holder.0,
                        lease: Duration::from_secs(seconds),
                    },
                    (None, progress) => Request::Progress {
                        call,
                        progress: progress?,
                    },
                })
            }
            MessageType::Completed => {
                let payload: CompletedPayload = self.payload()?;
                self.same(payload.tool_call_id, None, payload.run_id)?;
                Some(Request::Submit {
                    call: payload.tool_call_id,
                    submission: Submission::Output(payload.result),
                })
            }
            MessageType::Error => {
                let payload: ErrorPayload = self.payload()?;
                self.same(payload.tool_call_id, None, payload.run_id)?;
                let message = match payload.error {
                    TextOr::Text(message) => message,
                    TextOr::More(error) => error.message.0,
                };
                Some(Request::Submit {
                    call: payload.tool_call_id,
                    submission: Submission::Error(message),
                })
            }
        }
    }

    fn reject(&mut self) -> Option<Request> {
        let payload: RejectPayload = self.payload()?;
        if let Some(approval) = payload.approval_id {
            self.same(approval.call(), payload.tool_call_id, payload.run_id)?;
            return Some(Request::Decide {
                approval,
                decision: Decision::Deny(payload.reason.map(|reason| reason.0)),
                remember: None,
            });
        }
        let Some(call) = payload.tool_call_id else {
            self.wrong("payload", "needs toolCallId beside holder");
            return None;
        };
        self.same(call, None, payload.run_id)?;
        Some(Request::Release {
            call,
            holder: payload.holder?.0,
        })
    }

    fn payload<T: Wire>(&mut self) -> Option<T> {
        self.members.take("payload", self.at, self.problems)
    }

    /// A call and a run that are named beside the one that counts must be its own.
    fn same(&mut self, counts: CallId, call: Option<CallId>, run: Option<RunId>) -> Option<()> {
        if call.is_some_and(|call| call != counts) || run.is_some_and(|run| run != counts.run) {
            self.wrong("payload", "names ids that do not belong together");
            return None;
        }
        Some(())
    }

    fn wrong(&mut self, member: &str, words: &str) {
        self.problems.push(At::Member(self.at, member).problem(words));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CALL: &str = "call_00000000000000000000000001_0";
    const APPROVAL: &str = "appr_00000000000000000000000001_0";

    fn sent(kind: &str, payload: Value) -> String {
        json!({"type": kind, "toolId": "demo", "payload": payload, "timestamp": 1}).to_string()
    }
    fn refused(text: &str) -> String {
        let body = read(text).unwrap_err().into_body();
        let told = serde_json::to_value(&body).unwrap();
        let errors = told["errors"].as_array().cloned().unwrap_or_default();
        let words = errors.iter().map(|error| {
            format!(
                "{} {}",
                error["pointer"].as_str().unwrap(),
                error["message"].as_str().unwrap()
            )
        });
        format!("{} {}", body.status, words.collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn each_type_says_what_is_wanted() {
        let read = |kind, payload| read(&sent(kind, payload)).unwrap().request;
        assert!(matches!(
            read(
                "TOOL_ACCEPTED",
                json!({"approvalId": APPROVAL, "toolCallId": CALL})
            ),
            Request::Decide {
                decision: Decision::Approve(None),
                ..
            }
        ));
        assert!(matches!(
            read("TOOL_REJECTED", json!({"approvalId": APPROVAL, "reason": "no"})),
            Request::Decide {
                decision: Decision::Deny(Some(_)),
                ..
            }
        ));
        assert!(matches!(
            read("TOOL_REJECTED", json!({"toolCallId": CALL, "holder": "tab"})),
            Request::Release { .. }
        ));
        assert!(matches!(
            read("TOOL_EXECUTING", json!({"toolCallId": CALL, "holder": "tab"})),
            Request::Claim { .. }
        ));
        assert!(matches!(
            read("TOOL_EXECUTING", json!({"toolCallId": CALL, "progress": null})),
            Request::Progress { .. }
        ));
        assert!(matches!(
            read("TOOL_COMPLETED", json!({"toolCallId": CALL, "result": null})),
            Request::Submit {
                submission: Submission::Output(_),
                ..
            }
        ));
        assert!(matches!(
            read(
                "TOOL_ERROR",
                json!({"toolCallId": CALL, "error": {"message": "broken"}})
            ),
            Request::Submit {
                submission: Submission::Error(_),
                ..
            }
        ));
    }

    #[test]
    fn everything_wrong_is_told_with_its_place() {
        assert!(refused("nonsense").starts_with("400"));
        assert!(refused("[]").starts_with("422  the body must be an object"));
        let words = refused(r#"{"type":"TOOL_COMPLETED","payload":{"toolCallId":"x"},"more":1}"#);
        for place in [
            "/toolId",
            "/timestamp",
            "/more",
            "/payload/toolCallId",
            "/payload/result",
        ] {
            assert!(words.contains(&format!("{place} ")), "{place}: {words}");
        }
        assert!(refused(&sent("TOOL_PROPOSED", json!({}))).contains("/type is sent by the gateway alone"));
        assert!(refused(&sent("TOOL_ACCEPTED", Value::Null)).contains("/payload"));
        let other = json!({"approvalId": APPROVAL, "toolCallId": "call_00000000000000000000000001_1"});
        assert!(refused(&sent("TOOL_ACCEPTED", other)).contains("do not belong together"));
        assert!(refused(&sent("TOOL_REJECTED", json!({"holder": "tab"}))).contains("needs toolCallId"));
    }

    #[test]
    fn a_message_names_its_tool_or_leaves_it_open() {
        let text = sent("TOOL_ACCEPTED", json!({ "approvalId": APPROVAL }));
        assert_eq!(read(&text).unwrap().tool.as_deref(), Some("demo"));
        assert_eq!(read(&text.replace("demo", "*")).unwrap().tool, None);
    }

    #[test]
    fn the_name_of_a_message_is_read_also_when_the_rest_is_wrong() {
        assert_eq!(id_of(r#"{"type":"X","id":"m-1"}"#).as_deref(), Some("m-1"));
        assert_eq!(id_of(r#"{"id":7}"#), None);
        assert_eq!(id_of(r#"{"id":""}"#), None);
        assert_eq!(id_of("nonsense"), None);
    }
}
