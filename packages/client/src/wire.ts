// Generated from crates/gateway/openapi.json by `npm run generate`. Do not edit.

/** One revision of an agent. Secrets in its configuration are masked. */
export interface Agent {
  /** Unique in the project. */
  name: AgentName;
  /** Counted from 1. */
  revision: number;
  /** The configuration as it was written, secrets masked. */
  config: Record<string, unknown>;
  /** When this revision was written. */
  createdAt: Time;
  /** What is valid and most likely not meant, told when it is saved: calls that nothing can ever answer, placeholders that nothing fills, misspelt keywords of schemas; each with its place. */
  warnings?: Fault[];
}

/** The agents of a project. */
export interface AgentList {
  /** By name. */
  agents: Agent[];
}

/** An agent's name, unique in its project. */
export type AgentName = string;

/** Something that an agent has stored. */
export type AgentRecordBody = Record<string, unknown> & ({
  /** Unique among what its agent has of this kind. */
  id: string;
  /** Higher with each change; in quotes it is the `etag` that `if-match` takes. */
  version: number;
  nextAt?: Time | null;
  /** When it was created. */
  createdAt: Time;
  /** When it was last changed. */
  updatedAt: Time;
});

/** A page of records, by id. */
export interface AgentRecordList {
  /** The records. */
  records: AgentRecordBody[];
  /** What to give as `after` for the next page; null on the last. A page may be empty and not the last. */
  nextCursor?: string | null;
}

/** A revision of an agent, without its configuration. */
export interface AgentRevision {
  /** Counted from 1. */
  revision: number;
  /** When it was written. */
  createdAt: Time;
}

/** A page of an agent's revisions, newest first. */
export interface AgentRevisionList {
  /** The revisions. */
  revisions: AgentRevision[];
  /** What to give as `before` for the next page; null on the last. */
  nextCursor?: number | null;
}

/** An answer to a question. */
export interface AnswerQuestion {
  /** What is done with it. */
  action: 'accept' | 'decline' | 'cancel';
  /** What is filled in, matching the question's schema; with `accept` of a question that has one, and never else. */
  content?: unknown;
}

/** The run that answers a message has ended, or waits for a client, an approval or a moment, as `status` and `pending` tell. */
export type Answered = Run & {
  /** Id of the message. */
  messageId: MessageId;
  /** The same as `id`. */
  runId: RunId;
};

/** An answer is stored. The same answer again gets the same receipt. */
export interface AnsweredQuestion {
  /** Id of the question. */
  questionId: QuestionId;
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Its run. */
  runId: RunId;
  /** What was done with the question. */
  action: QuestionAction;
  /** The place of the answer. */
  seq: number;
  /** When it was stored. */
  time: Time;
}

/** An answer is stored; with the run when that was waited for. */
export type AnsweredQuestionAndRun = AnsweredQuestion & ({
  run?: Run | null;
});

export type Any = unknown;

/** A question to a person: may this call run? */
export type ApprovalId = string;

/** A page of open questions, newest run first. */
export interface ApprovalList {
  /** The questions. */
  approvals: OpenApproval[];
  nextCursor?: RunId | null;
}

/** Where and when people are asked. */
export interface AskedIn {
  /** The run of the call; a child run's question is one of the run at the top, too. */
  runId: RunId;
  rootRunId?: RunId | null;
  /** The space whose members may answer: that of the run at the top. */
  spaceId: SpaceId;
  /** The agent that asks. */
  agent: AgentName;
  /** When it was asked. */
  requestedAt: Time;
}

/** One budget. */
export interface Budget {
  /** Whose it is: `project`, `user` or `agent`. */
  scope: string;
  /** How long it lasts, in UTC: `day` or `month`. */
  period: string;
  /** What was consumed in it so far. */
  used: BudgetAmounts;
  /** What may be consumed in it; null for what is not limited. */
  max: BudgetAmounts;
  /** When the next one begins. */
  resetsAt: Time;
}

/** Amounts that budgets limit. */
export interface BudgetAmounts {
  /** Tokens read and written. */
  tokens?: number | null;
  /** Runs, child runs and requested calls among them. */
  runs?: number | null;
  /** Cost; users are told of it where their cost is limited. */
  cost?: number | null;
}

/** How far budgets are used up. */
export interface BudgetList {
  /** Currency of the costs. */
  currency: string;
  /** For a backend those of the project, and of the user and the agent that it names; for a user its own. */
  budgets: Budget[];
}

/** Why a call gave no output. */
export interface CallError {
  /** For programs: `PERMISSION_DENIED`, `TIMEOUT`, `EXECUTION_FAILED`, … */
  code: string;
  /** In words. */
  message: string;
}

/** One use of a tool by the model. */
export type CallId = string;

/** How far a call is. */
export interface CallProgress {
  /** Whatever the tool says of itself: any JSON. */
  progress: unknown;
}

export type CallTool = {
  /** The arguments, as the tool's parameters say; none is `{}`. */
  arguments?: Record<string, unknown> | null;
  /** Whose tools and grants; otherwise those of the space's agent, or of the project's `default`. */
  agent?: AgentName | null;
  /** Where; otherwise in a space that is made for this call. A user names one. */
  space?: SpaceId | null;
  /** The same as `space`. */
  spaceId?: SpaceId | null;
  /** Tools that the caller executes itself. */
  clientTools?: NewClientTool[] | null;
};

/** One event of a UI message stream. */
export interface ChatEvent {
  /** A chunk as JSON text, or `[DONE]`. */
  data: string;
  /** Where the stream can be taken up again. */
  id?: string | null;
}

/** A message as the client sees it. */
export interface ChatMessage {
  /** Chosen by the client: the same id again is the same message. */
  id?: string | null;
  /** Author of a message. */
  role: 'user' | 'assistant' | 'system' | 'tool';
  /** Parts of the message. */
  parts?: {
    type: string;
  }[] | null;
  /** Text, or the parts of the message. */
  content?: string | {
    type: string;
  }[] | null;
  /** The call whose result this is. */
  toolCallId?: string | null;
  /** The same as `toolCallId`. */
  tool_call_id?: string | null;
  /** Whatever the client attaches; never given to a model. */
  metadata?: Record<string, unknown> | null;
}

/** A chat as it stands. */
export interface ChatPast {
  /** The chat's id, as it was given. */
  id: string;
  /** What was said, oldest first, without the answer that is under way. */
  messages: PastMessage[];
}

export type ChatTurn = {
  /** Names the chat; the same id goes on with the same conversation. Without one a new chat begins. */
  id?: string | null;
  /** The conversation. A claim, not a fact: the new message and answers to what is open count, and in a chat that is new all of it, as told by the client. What does not match a known chat is reported in `data-run`. */
  messages?: ChatMessage[] | null;
  /** The last message alone, or just its words. */
  message?: string | ChatMessage | null;
  /** Tools that the caller executes itself. */
  clientTools?: NewClientTool[] | null;
  /** The sender, as a client that executes tools: calls are offered to it first. */
  executor?: MessageExecutor | null;
  /** Of the agent's client tools only those of these categories, and those of none. */
  selectedToolCategories?: string[] | null;
  /** What the client wants: an answer, or another one. */
  trigger?: 'submit-message' | 'regenerate-message' | 'resume-stream' | null;
  /** Which version of the stream the client reads; `v6` unless said otherwise. */
  dialect?: 'v5' | 'v6' | 'v7' | null;
};

/** A client's claim on a call. */
export interface Claim {
  /** The name the client chose. */
  holder: string;
  /** When the call is offered again. */
  until: Time;
  by?: EntityId | null;
}

/** A client wants to execute a call, or goes on doing so. */
export interface ClaimCall {
  /** A name the client chose for itself: a tab, a process. */
  holder: string;
  /** How long the claim holds without another word; 30 unless said otherwise. */
  leaseSeconds?: number | null;
}

/** A client holds a call. */
export interface Claimed {
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Its run. */
  runId: RunId;
  /** Name of the tool. */
  toolName: string;
  /** What to run it with. */
  input: Any;
  /** Client that holds the claim. */
  holder: string;
  /** Until when, unless it is claimed again. */
  until: Time;
  /** When the call is given up whoever holds it. */
  deadline: Time;
}

/** How many shared tools were removed. */
export interface ClearedTools {
  /** Number of the tools. */
  removed: number;
}

/** A tool that the caller of a run executes itself. */
export interface ClientTool {
  /** What the model calls it. */
  name: string;
  /** Description that the model is given. */
  description: string;
  /** JSON Schema of the input. */
  parameters: Record<string, unknown>;
  /** JSON Schema of the output. */
  outputSchema?: Record<string, unknown> | null;
  /** Deadline of an answer, in milliseconds. */
  timeoutMs?: number | null;
  /** Its author's number for this state of it. */
  version?: string | null;
  /** Set when it should not be used any more. */
  deprecated?: string | null;
  /** What the caller calls it, when the run had to call it something else. */
  givenName?: string | null;
}

/** A yes that was remembered: calls of the tool run without being asked about. */
export interface Consent {
  /** Id, unique in its space. */
  id: string;
  /** Agent whose calls it is for. */
  agent: AgentName;
  /** Tool that it is for. */
  toolName: string;
  /** SHA-256 of the tool's definition, in hex: a changed tool asks again. */
  toolHash: string;
  by?: EntityId | null;
  givenFor?: EntityId | null;
  /** The question that was answered. */
  approvalId: ApprovalId;
  /** When it was given. */
  givenAt: Time;
}

/** The consents of a space. */
export interface ConsentList {
  /** All that the caller may see, newest first. */
  consents: Consent[];
}

/** A link to a file. */
export interface CreateFileLink {
  /** Name of the file. */
  path: string;
  /** Version of the file; the newest if there is none. */
  version?: number | null;
  /** Seconds that it works for. */
  expiresIn?: number | null;
}

/** A new key. */
export interface CreateKey {
  /** Kind of key. */
  kind: 'secret' | 'public';
  /** What the key is for, in the owner's words. */
  name?: string | null;
}

/** A new project. */
export interface CreateProject {
  /** Unique among projects: lower-case letters, digits and hyphens. */
  name: string;
  /** Signs the tokens of its users (HS256); made and shown once when neither this nor `jwksUrl` is given. */
  jwtSecret?: string | null;
  /** Where the keys are published that sign the tokens of its users (RS256, ES256, EdDSA). */
  jwksUrl?: string | null;
  /** What `iss` of a token that those keys sign must be; any when it is left out. */
  jwtIssuer?: string | null;
  /** What `aud` of a token that those keys sign must name; any when it is left out. Set it where the identity provider signs for other applications too. */
  jwtAudience?: string | null;
  /** Its settings. */
  settings?: Record<string, unknown> | null;
}

/** A new space. */
export interface CreateSpace {
  /** Its name for people. */
  title?: string | null;
  /** The agent that answers when a message names none. */
  agent?: AgentName | null;
  /** Whatever the project attaches. */
  metadata?: Record<string, unknown> | null;
  /** What was said before, elsewhere: the past of the space, marked as told by the client. */
  history?: ChatMessage[] | null;
  /** Who takes part: entity ids, or subjects. For backends only; a user is the one member of its space. */
  members?: string[] | null;
}

/** A project that was just created, with what is shown only now. */
export type CreatedProject = Project & ({
  /** The key of its backend: only here, only now. */
  secretKey: string;
  /** The key of its users' browsers. */
  publicKey: string;
  /** Signs the tokens of its users, when it was made here: only here, only now. */
  jwtSecret?: string | null;
});

/** Somebody who may sign plugins for the project. */
export interface Curator {
  /** The curator's id, which stands in what it signs. */
  id: string;
  /** Name for people. */
  name?: string | null;
  /** Its public keys, by id; those that were revoked long ago are counted in `retiredKeys`. */
  keys: CuratorKey[];
  /** Keys that were revoked long ago. They are kept as hashes, and never count again. */
  retiredKeys: number;
  /** When it was added. */
  addedAt: Time;
  revoked?: Revocation | null;
}

/** A public key of a curator. */
export interface CuratorKey {
  /** The key's id. */
  id: string;
  /** Algorithm of its signatures. */
  algorithm: string;
  /** The key as PEM. */
  publicKey: string;
  notBefore?: Time | null;
  expires?: Time | null;
  /** When it was added. */
  addedAt: Time;
  revoked?: Revocation | null;
}

/** The curators of a project. */
export interface CuratorList {
  /** By id, revoked ones included. */
  curators: Curator[];
}

export type Decide = {
  /** Whether the call may run. */
  approved?: boolean | null;
  /** The decision as a word, instead of `approved`. */
  decision?: 'approve' | 'deny' | null;
  /** With a yes: the input to run with instead. It is validated again. */
  input?: unknown;
  /** With a yes: whether it stands for later calls too, until it is revoked. As the tool says unless given; `true` needs a tool that remembers decisions. */
  remember?: boolean | null;
  /** With a no: why. The model is told. */
  reason?: string | null;
};

/** Which definition was looked at. */
export interface DecideTool {
  /** Hash of the definition, so that no other one is meant; the current one if it is left out. */
  hash?: string | null;
}

/** A decision is stored. The same decision again gets the same receipt. */
export interface Decided {
  /** Id of the approval. */
  approvalId: ApprovalId;
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Its run. */
  runId: RunId;
  /** Whether the call may run. */
  approved: boolean;
  /** Whether the yes stands for later calls too: see `GET /v1/spaces/{space}/consents`. */
  remembered: boolean;
  /** The place of the decision. */
  seq: number;
  /** When it was stored. */
  time: Time;
}

/** A decision is stored; with the run when that was waited for. */
export type DecidedAndRun = Decided & ({
  run?: Run | null;
});

/** A decision on a call. */
export interface Decision {
  approvalId?: ApprovalId | null;
  /** The remembered yes that the call runs by, where nobody was asked. */
  consentId?: string | null;
  /** The call. */
  toolCallId: CallId;
  /** Name of the tool. */
  toolName: string;
  /** Whether the call may run. */
  approved: boolean;
  by?: EntityId | null;
  /** Why not, where the reader may know. */
  reason?: string | null;
  /** Nobody decided in time. */
  expired?: boolean;
  /** Whoever decided changed the input. */
  edited?: boolean;
  /** The yes stands for later calls too. */
  remembered?: boolean;
  /** SHA-256 of the input that runs, in hex, over its JSON with sorted members; where the reader may see the input. */
  inputHash?: string | null;
  /** When it was decided; of a remembered yes, when that was given. */
  time: Time;
}

export type Definition = unknown;

/** How many records of an agent were deleted. */
export interface DeletedRecords {
  /** Its goals. */
  goals: number;
  /** Memories in its own scope. */
  memories: number;
  /** Its plans. */
  plans: number;
  /** Parts of documents that only it could search; a document has one for about 4,000 characters. */
  knowledgeParts: number;
}

/** What was deleted. */
export interface DeletionReport {
  /** How much was removed, by kind: `runs`, `entries` and `bytes` of logs, `spaces`, `memberships`, `messages`, and kinds of records such as `file`, `memory`, `plan`. Empty when it was deleted before. */
  removed: Record<string, unknown>;
}

/** Something that has to be delivered outside. What was taken is gone. */
export interface Delivery {
  /** Which; a webhook is given it as `webhook-id`. */
  id: string;
  /** Channel of the delivery. */
  channel: DeliveryChannel;
  /** State of the delivery. */
  state: DeliveryState;
  /** How often it was tried. */
  attempts: number;
  /** Why it was not taken, the last time. */
  error?: string | null;
  /** Content of the notification. */
  payload: Record<string, unknown>;
  /** When it was queued. */
  createdAt: Time;
  dueAt?: Time | null;
}

/** Channel of a delivery. */
export type DeliveryChannel = 'webhook' | 'mail';

/** A page of deliveries, by id: those of older runs first. */
export interface DeliveryList {
  /** The deliveries. */
  deliveries: Delivery[];
  /** What to give as `after` for the next page; null on the last. */
  nextCursor?: string | null;
}

/** State of a delivery. */
export type DeliveryState = 'pending' | 'dead';

/** What there is to say of a document. */
export interface Document {
  /** Unique in its collection: the project's, or an agent's own. */
  id: string;
  /** Its name for people. */
  title: string;
  /** Where the document comes from, such as a URL. */
  source?: string | null;
  /** Media type of the original. */
  mimeType: string;
  /** Characters of its text. */
  characters: number;
  /** Pieces that it is found by. */
  passages: number;
  /** Whether it is also found by meaning, not only by its words. */
  embedded: boolean;
  /** When it was first kept. */
  createdAt: Time;
  /** When it was last changed. */
  updatedAt: Time;
  /** All of its text, where one document is asked for. */
  text?: string | null;
}

/** Why a document was not stored. The others of the request are stored all the same. */
export interface DocumentError {
  /** The code that `PUT` of this document alone would give. */
  code: string;
  /** What is wrong with it. */
  message: string;
}

/** A page of documents, by id. */
export interface DocumentList {
  /** The documents. */
  documents: Document[];
  /** What to give as `after` for the next page; null on the last. */
  nextCursor?: string | null;
}

/** A lasting participant. */
export interface Entity {
  /** Id of the entity. */
  id: EntityId;
  /** The project's own name for it: a token's `sub`. */
  subject: string;
  /** `person`, `agent`, `device` or the project's own word. */
  kind: string;
  /** Its name for people. */
  name?: string | null;
  /** Whatever the project attached. */
  metadata?: Record<string, unknown> | null;
  /** Permissions that it has in every space. */
  grants: string[];
  /** When it was created. */
  createdAt: Time;
}

/** A lasting participant. */
export type EntityId = string;

/** Something that happened in a run or a space. A type that you do not know is to be skipped. */
export type Event = RunStartEvent | MessageEvent | HistoryEvent | CallRequestEvent | ContextCutEvent | StepStartEvent | StepRetryEvent | TextStartEvent | TextDeltaEvent | TextEndEvent | ReasoningStartEvent | ReasoningDeltaEvent | ReasoningEndEvent | ToolInputStartEvent | ToolInputDeltaEvent | ToolInputAvailableEvent | ToolApprovalRequestEvent | ToolApprovalResponseEvent | ToolQuestionEvent | ToolQuestionResponseEvent | ToolSamplingEvent | ToolExecutingEvent | ToolReleasedEvent | ToolProgressEvent | ToolOutputAvailableEvent | ToolOutputErrorEvent | ToolOutputDeniedEvent | StepFinishEvent | RunStatusEvent | RunFinishEvent | NotificationEvent;

/** A page of stored events, oldest first. */
export interface EventPage {
  /** The events. */
  events: Event[];
  /** What to give as `after` for the next page; null when there is none yet. */
  nextCursor?: number | null;
}

/** A budget that is used up. */
export interface ExceededBudget {
  /** The setting that holds it, such as `budgets.user.day.tokens`. */
  setting: string;
  /** What was consumed, in tokens, runs or units of the currency. Users are told of their own budgets alone. */
  used?: number | null;
  /** What may be consumed, in the same unit. */
  max?: number | null;
  /** When the next day or month begins, in UTC. */
  resetsAt: Time;
}

/** One thing that is wrong with what was sent. */
export interface Fault {
  /** JSON pointer (RFC 6901) into the body; empty for the whole of it. */
  pointer: string;
  /** What was seen and what would have been right. */
  message: string;
}

/** What there is to say of a file. */
export interface File {
  /** Unique in its space. */
  path: string;
  /** Media type of the content. */
  mimeType: string;
  /** Size in bytes. */
  bytes: number;
  /** Higher with each change; no version of a name ever comes back. */
  version: number;
  /** When it was first written. */
  createdAt: Time;
  /** When this version was written. */
  updatedAt: Time;
}

/** A link to one version of a file, for anybody who has it. */
export interface FileLink {
  /** The link: an address on this gateway, absolute if the setting `files.public_url` is set. */
  url: string;
  /** Name of the file. */
  path: string;
  /** Version of the file. The link never leads to another one. */
  version: number;
  /** Media type of the file. */
  mimeType: string;
  /** Size in bytes. */
  bytes: number;
  /** Whether a browser shows it; it saves every other file. */
  inline: boolean;
  /** The link works until then at most. */
  expiresAt: Time;
}

/** A page of files, by name. */
export interface FileList {
  /** The files. */
  files: File[];
  /** What to give as `after` for the next page; null on the last. */
  nextCursor?: string | null;
  /** Files that the space has. */
  totalFiles: number;
  /** Bytes that they take, earlier versions included. */
  totalBytes: number;
  /** Files that it may have. */
  filesMax: number;
  /** Bytes that they may take. */
  bytesMax: number;
}

/** Tools, in our words or in a vendor's. */
export type FoundTools = ToolList | ToolDefinitions;

/** How the gateway is. */
export interface GatewayHealth {
  /** `ok`, or `unavailable` when the store cannot be read or written. */
  store: string;
  /** What carries events between nodes. */
  bus: string;
  /** Protections of the sandbox that this machine lacks. */
  sandboxMissing: string[];
  /** Version of the gateway. */
  version: string;
}

/** It is there. */
export interface Health {
  /** Always `ok`. */
  status: string;
}

/** Runs that were created in one hour. */
export interface HourBody {
  /** When the hour began. */
  start: Time;
  /** Runs that were created. */
  started: number;
  /** Of those, how many have completed. */
  completed: number;
  /** Of those, how many have failed. */
  failed: number;
  /** Of those, how many were cancelled. */
  cancelled: number;
  /** Tokens that those have used so far. */
  tokens: number;
}

/** An image, by `https:` address or as a `data:` URL. */
export interface ImagePart {
  /** Always `image`. */
  type: 'image';
  /** Where it is, or what it is. */
  url: string;
  /** Its media type, such as `image/png`. */
  mediaType?: string | null;
}

/** A key, by what may be told of it. */
export interface Key {
  /** Id of the key. */
  id: KeyId;
  /** What it opens: `secret` or `public`. */
  kind: KeyKind;
  /** The key itself: only here, only now. */
  key?: string | null;
  /** Its first characters. */
  hint: string;
  /** What the key is for, in the owner's words. */
  name?: string | null;
  /** When it was created. */
  createdAt: Time;
}

/** Names an API key; not the key itself. */
export type KeyId = string;

/** Kind of key. */
export type KeyKind = 'secret' | 'public';

/** The keys of a project. */
export interface KeyList {
  /** All of them. */
  keys: Key[];
}

/** Passages that match a question, best first. */
export interface KnowledgeResults {
  /** The passages. */
  results: Passage[];
}

/** How long calls took at most, in milliseconds: exact up to 16, then rounded up by an eighth or less. */
export interface Latency {
  /** Half of them. */
  p50: number;
  /** Nine of ten. */
  p90: number;
  /** Ninety-nine of a hundred. */
  p99: number;
}

/** A session, as others see it. */
export interface ListedSession {
  /** Id of the session. */
  id: SessionId;
  /** When somebody signed in. */
  createdAt: Time;
  /** When it was used last. */
  lastUsedAt: Time;
  /** When it ends if nobody uses it any more. */
  expiresAt: Time;
  /** Whether it may manage projects too. */
  operator: boolean;
  /** What the browser said of itself. */
  userAgent?: string | null;
  /** Whether it is the one that asks. */
  current: boolean;
}

/** A login code. It is good once. */
export interface LoginCode {
  /** What `POST /v1/sessions` takes. */
  code: string;
  /** The code is good before this time. */
  expiresAt: Time;
  /** The link to open in a browser. The code stands behind `#`, so that it reaches no log on the way. */
  url: string;
}

/** A login link. */
export interface MakeLoginCode {
  /** The project to sign in to, by name; for the operator, `default` unless said otherwise. A secret key has its own. */
  project?: string | null;
}

/** Results of several calls. */
export interface ManyResults {
  /** The results. */
  results: OneResult[];
}

/** Why two words count as the same. */
export type MatchReason = 'exact' | 'inflected' | 'typo';

/** What somebody said. */
export interface MatchTools {
  /** The words. */
  text: string;
  /** What the conversation is about, as `{"topic": "…", "keywords": ["…"]}`: its texts count half, and its members are the variables of what is said aloud. */
  context?: Record<string, unknown> | null;
  /** The language, as `it` or `it-IT`. Without one, inflections of all languages that the gateway knows count. */
  language?: string | null;
  /** Tools of this agent only. */
  agent?: AgentName | null;
  /** Also, for a user, of the agent that a backend gave this space. */
  spaceId?: SpaceId | null;
  /** Most matches. */
  limit?: number | null;
}

/** A word of a trigger and what was said for it. */
export interface MatchedWord {
  /** The word of the trigger, without case and accents. */
  trigger: string;
  /** The word that was said, without case and accents. */
  said: string;
  /** Why they are the same: `exact`, `inflected` (forms of one word), `typo`. */
  how: MatchReason;
  /** Letters that differ, of a typo. */
  distance?: number | null;
  /** It stands in the context, and was not said. */
  inContext?: boolean;
}

/** The gateway as a client of authorization servers (client id metadata document). */
export interface McpClientMetadata {
  /** The address of this document. */
  client_id: string;
  /** What people read. */
  client_name: string;
  /** The gateway's own address. */
  client_uri: string;
  /** Where browsers come back to. */
  redirect_uris: string[];
  /** `authorization_code` and `refresh_token`. */
  grant_types: string[];
  /** `code`. */
  response_types: string[];
  /** `none`: the client has no secret. */
  token_endpoint_auth_method: string;
}

/** An MCP server. The values of headers and variables are masked. */
export interface McpServer {
  /** What it is called, `<agent>/<server>` for one that an agent brings. */
  name: string;
  /** Who configured it: `settings` (the operator), `project` (over HTTP) or `agent`. */
  origin: string;
  /** Its configuration, values of headers and variables masked. */
  config: Record<string, unknown>;
  /** Where the connection stands: `configured` (nobody needs it), `connecting`, `ready` or `failed`. */
  status: string;
  /** Why it failed. */
  reason?: string | null;
  nextTry?: Time | null;
  /** A person must sign in first: `POST /v1/mcp/servers/{server}/authorize` says where. */
  needsSignIn: boolean;
  /** The protocol revision that it speaks; missing until it was connected once. */
  protocol?: string | null;
  serverInfo?: McpServerInfo | null;
  /** How it wants its tools to be used. No model is told. */
  instructions?: string | null;
  /** Its tools, by its own names. */
  tools: McpTool[];
  /** Number of tools that wait for a review. */
  held: number;
  /** Tools that were left out or simplified, in words. */
  warnings: string[];
}

/** What a server says of itself. */
export interface McpServerInfo {
  /** Name of the program. */
  name: string;
  /** Version of the program. */
  version?: string | null;
}

/** The MCP servers of a project. */
export interface McpServerList {
  /** By name. */
  servers: McpServer[];
}

/** The log of an MCP server. */
export interface McpServerLog {
  /** At most 200, oldest first; none for a server at an address. */
  lines: McpServerLogLine[];
}

/** A line that the program of an MCP server wrote to its standard error. */
export interface McpServerLogLine {
  /** When the gateway read it. */
  at: Time;
  /** The line, values of headers, variables and secrets hidden; of one with more than 4 KiB the beginning. */
  text: string;
}

/** A sign-in that has begun. */
export interface McpSignIn {
  /** Where a person signs in, in a browser. Whoever has it can sign the gateway in, so it is for one person. */
  authorizeUrl: string;
  /** When it is too late. */
  expiresAt: Time;
}

/** A tool of an MCP server. */
export interface McpTool {
  /** The server's own name for it. */
  tool: string;
  /** What agents and models call it. */
  name: string;
  /** `accepted` (offered), `held` (waits for a review) or `rejected`. */
  state: string;
  /** Why it is held: `new`, `flagged` or `changed`. */
  why?: string | null;
  since?: Time | null;
  /** SHA-256 of the definition's canonical JSON, in hex. */
  hash: string;
  /** The definition as the server lists it. */
  definition: Record<string, unknown>;
  /** What differs from the definition that was accepted last. */
  diff?: McpToolDifference[];
  /** What in it looks like an instruction to the model. */
  flags?: McpToolFlag[];
}

/** One place at which a definition differs from the accepted one. */
export interface McpToolDifference {
  /** JSON pointer to the place. */
  pointer: string;
  before?: Any | null;
  after?: Any | null;
}

/** Something in a definition that looks like an instruction to the model. */
export interface McpToolFlag {
  /** JSON pointer to the text. */
  pointer: string;
  /** Why it is told, in words. */
  reason: string;
  /** What was seen, with hidden characters written out. */
  seen: string;
}

/** A member of a space. */
export interface Member {
  /** Who it is. */
  entity: Entity;
  /** The project's word for what it is there. */
  role?: string | null;
  /** Permissions that it has there, beside those of its entity. */
  grants: string[];
}

/** The client that sends a message. Calls of its tools are reserved for it for a few seconds, then for whoever claims them. */
export interface MessageExecutor {
  /** The name with which it claims calls. */
  holder: string;
  /** Names of the tools that it executes; every client tool unless said otherwise. */
  tools?: string[] | null;
}

/** One message in a space. */
export type MessageId = string;

export type MessageObject = {
  /** Who speaks; only `user` may. */
  role?: 'user' | null;
  /** Chosen by the sender: the same id again is the same message. */
  messageId?: MessageId | null;
  /** The text. */
  text?: string | null;
  /** Text, or the parts of the message. */
  content?: string | Array<TextPart | ImagePart> | null;
  /** Parts of the message. */
  parts?: Array<TextPart | ImagePart> | null;
  /** Whatever the sender attaches; never given to a model. */
  metadata?: Record<string, unknown> | null;
};

/** What a model costs per million tokens. */
export interface ModelPrice {
  /** Tokens read. */
  input: number;
  /** Tokens written. */
  output: number;
  /** Tokens read from the vendor's cache; as `input` if missing. */
  cachedInput?: number | null;
}

/** A tool that the caller executes itself; also in OpenAI's form. */
export type NewClientTool = {
  name: string;
  description: string;
  /** JSON Schema of the input: of type object, at most 5 levels, 20 properties each, no `$ref`. */
  parameters?: Record<string, unknown> | null;
  /** The same as `parameters`. */
  inputSchema?: Record<string, unknown> | null;
  /** JSON Schema of the output, within the same bounds. */
  outputSchema?: Record<string, unknown> | null;
  /** How long an answer may take: seconds, or a text such as `30s` or `10m`. */
  timeout?: number | string | null;
  /** The author's number for this state of the tool. */
  version?: string | null;
  /** Set when it should not be used any more: why, or true. The words travel with the result. */
  deprecated?: string | boolean | null;
  /** OpenAI's; changes nothing. */
  strict?: unknown;
} | {
  type?: 'function' | null;
  function: {
    name: string;
    description: string;
    /** JSON Schema of the input: of type object, at most 5 levels, 20 properties each, no `$ref`. */
    parameters?: Record<string, unknown> | null;
    /** The same as `parameters`. */
    inputSchema?: Record<string, unknown> | null;
    /** JSON Schema of the output, within the same bounds. */
    outputSchema?: Record<string, unknown> | null;
    /** How long an answer may take: seconds, or a text such as `30s` or `10m`. */
    timeout?: number | string | null;
    /** The author's number for this state of the tool. */
    version?: string | null;
    /** Set when it should not be used any more: why, or true. The words travel with the result. */
    deprecated?: string | boolean | null;
    /** OpenAI's; changes nothing. */
    strict?: unknown;
  };
};

export type OneResult = {
  /** Id of the tool call. */
  toolCallId?: CallId | null;
  /** The same as `toolCallId`. */
  callId?: CallId | null;
  /** What it gave: any JSON. */
  result?: unknown;
  /** Error message of the tool. */
  error?: string | ResultError | null;
  /** Its run; checked when given. */
  runId?: RunId | null;
  /** Who says so, for people. */
  source?: string | null;
  /** Which client says so, for people. */
  clientId?: string | null;
};

/** A question that waits for the caller. */
export type OpenApproval = AskedIn & ({
  /** Where to send the decision. */
  approvalId: ApprovalId;
  /** The call it is about. */
  toolCallId: CallId;
  /** The tool. */
  toolName: string;
  /** Exactly what will run, less what the tool hides from its approvers. */
  input?: Any;
  /** Whether the caller may send another input with a yes. */
  editable: boolean;
  remember?: Remember | null;
  /** What is said aloud to the caller. */
  voice?: string | null;
  /** When silence becomes a no. */
  expiresAt: Time;
});

/** A question of a tool that waits for an answer. */
export type OpenQuestion = AskedIn & ({
  /** Where to send the answer. */
  questionId: QuestionId;
  /** The call that asks. */
  toolCallId: CallId;
  /** The tool. */
  toolName: string;
  /** What is asked, in words. */
  message: string;
  schema?: Any | null;
  /** The page to visit instead. */
  url?: string | null;
  /** When silence becomes a cancel. */
  expiresAt: Time;
});

/** Signs in. */
export interface OpenSession {
  /** The code of a login link. */
  code: string;
}

/** What a project does. */
export interface Overview {
  /** Number of runs that have not ended, by status. */
  runs: Record<string, unknown>;
  /** Runs that wait for somebody. */
  waiting: Waiting;
  /** The last 24 hours, oldest first, the current one last. A run counts in the hour in which it was created. */
  hours: HourBody[];
  /** Calls of tools that ended yesterday or today, in UTC. */
  tools: ToolFigures;
  /** How the gateway is. */
  health: GatewayHealth;
}

/** A passage of a document. */
export interface Passage {
  /** Id of the document. */
  documentId: string;
  /** Title of the document. */
  title: string;
  /** Where the document comes from, such as a URL. */
  source?: string | null;
  /** Index of the passage in the document, from 0. */
  passage: number;
  /** Text of the passage. */
  text: string;
  /** Excerpt around the hit. */
  snippet: string;
  /** Relevance: 1 for the best hit of this search, less for the others. */
  score: number;
}

/** A message as the AI SDK keeps it. */
export interface PastMessage {
  id: string;
  /** `user`, `assistant`, or `system` for a message that no user wrote. */
  role: string;
  /** `{origin}` of a message that a plan posted; `{told: true}` of one that a client told when the chat was new. */
  metadata?: Record<string, unknown> | null;
  /** Parts of the message. */
  parts: Record<string, unknown>[];
}

/** What a run waits for. */
export interface Pending {
  /** Client calls that are open. */
  calls: PendingCall[];
  /** Approvals that nobody has decided on. */
  approvals: PendingApproval[];
  /** Questions of tools that nobody has answered. */
  questions?: PendingQuestion[];
  /** Calls that wait for a moment or a signal; for backends only. */
  pauses?: PendingPause[];
}

/** An approval that nobody has decided on. */
export interface PendingApproval {
  /** Where to send the decision. */
  approvalId: ApprovalId;
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Name of the tool. */
  toolName: string;
  /** Exactly what will run, when the reader may see it. */
  input?: Any;
  /** What is said aloud to whoever decides. */
  voice?: string | null;
  /** When silence becomes a no. */
  expiresAt: Time;
  agent?: AgentName | null;
}

/** A client call that is open. */
export interface PendingCall {
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Name of the tool. */
  toolName: string;
  /** What the client that brought the tool calls it, where the run had to rename it. */
  givenName?: string | null;
  /** What to run it with. */
  input: Any;
  deadline?: Time | null;
  claim?: Claim | null;
  agent?: AgentName | null;
}

/** A call that waits for a moment or a signal. */
export interface PendingPause {
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Name of the tool. */
  toolName: string;
  /** When it ends whatever happens. */
  until: Time;
  /** Whether `POST /v1/calls/{call}/signal` ends it. */
  signal: boolean;
}

/** A question of a tool that nobody has answered. */
export interface PendingQuestion {
  /** Where to send the answer. */
  questionId: QuestionId;
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Name of the tool. */
  toolName: string;
  /** What is asked, in words. */
  message: string;
  schema?: Any | null;
  /** The page to visit instead. */
  url?: string | null;
  /** When silence becomes a cancel. */
  expiresAt: Time;
  agent?: AgentName | null;
}

/** Where a tool runs. */
export type Placement = 'server' | 'plugin' | 'mcp' | 'client';

/** An installed plugin; never its code. */
export interface Plugin {
  /** The plugin's id. */
  id: string;
  /** Whether its tools are offered. */
  running: boolean;
  /** Why its tools are not offered. */
  stoppedBecause?: string | null;
  /** The current package. */
  current: PluginPackage;
  /** The other stored packages of the plugin. */
  otherVersions: PluginPackage[];
  /** Hashes of the packages that a rollback goes back to, the next one last. */
  history: string[];
  /** When the plugin was installed. */
  installedAt: Time;
  /** When its current package was chosen. */
  updatedAt: Time;
}

/** The plugins of a project. */
export interface PluginList {
  /** Which plugins may run: `production` or `development`. */
  mode: PluginMode;
  /** Installed plugins, by id. */
  plugins: Plugin[];
  /** Stored packages of removed plugins: runs under way may still use them. */
  removed: PluginPackage[];
  /** Bytes of all stored packages. */
  storedBytes: number;
}

/** A member of a kept tool that differs. */
export interface PluginMemberChange {
  /** Name of the tool. */
  tool: string;
  /** Name of the member, such as `approval`, `timeout` or `parameters`. */
  member: string;
  from?: Any | null;
  to?: Any | null;
}

/** Which plugins may run. */
export type PluginMode = 'production' | 'development';

/** The package of a plugin that a tool comes from. */
export interface PluginOfTool {
  /** Id of the plugin. */
  id: string;
  /** Version of the package. */
  version: string;
  /** Hash of the package. */
  packageHash: string;
  /** How far it is trusted; `unsigned` ones run in development mode only. */
  verification: PluginTrust;
}

/** A stored package; never its code. */
export interface PluginPackage {
  /** Hash of the package. */
  packageHash: string;
  /** SHA-256 of the stored document, signatures included; absent for one of before it was kept. */
  documentHash?: string | null;
  /** Id of its plugin. */
  plugin: string;
  /** Name for people. */
  name: string;
  /** The version. */
  version: string;
  /** Who signed it. */
  verification: PluginVerification;
  /** Names of its tools. */
  tools: string[];
  /** Its permissions. */
  permissions: PluginPermission[];
  /** Version ranges of the plugins that it needs, by id. */
  dependencies: Record<string, unknown>;
  /** Range of gateway versions that it needs. */
  engine?: string | null;
  /** Where it was fetched from. */
  sourceUrl?: string | null;
  /** Bytes of the document. */
  bytes: number;
  /** When it was stored. */
  addedAt: Time;
  revoked?: Revocation | null;
}

/** A permission of a package. */
export interface PluginPermission {
  /** As the package writes it. */
  permission: string;
  /** What it allows, in plain words. */
  description: string;
  /** In a review: whether the current version does not have it. */
  added?: boolean | null;
}

/** Something that stands against installing a package. */
export interface PluginProblem {
  /** Why, for programs. */
  code: string;
  /** Place in the document. */
  pointer: string;
  /** Why, in words. */
  message: string;
}

/** What installing a package does, or would do. */
export interface PluginReview {
  /** Whether it was installed by this request. */
  installed: boolean;
  /** What becomes of the plugin. */
  action: ReviewAction;
  /** The version that was current before. */
  fromVersion?: string | null;
  /** The package. */
  package: PluginPackage;
  /** What changes in the tools of the plugin. */
  tools: PluginToolChanges;
  /** The audit report: size, constructs in the code, hosts that it names, warnings. */
  audit: Record<string, unknown>;
  /** What stands against it; empty if it can be installed. */
  problems: PluginProblem[];
}

/** Changes of the tools of a plugin, by name. */
export interface PluginToolChanges {
  /** Tools that the current version does not have. */
  added: string[];
  /** Tools that only the current version has. */
  removed: string[];
  /** Tools that both have. */
  kept: string[];
  /** What differs in the definitions of kept tools, member by member. */
  changed: PluginMemberChange[];
  /** Kept tools whose code differs. */
  otherCode: string[];
}

/** How far a plugin that runs is trusted. */
export type PluginTrust = 'verified' | 'tools-only' | 'unsigned';

/** What the signature of a package was found to be. */
export interface PluginVerification {
  /** `verified`: all of it is signed. `tools-only`: permissions, version and id are not. `unsigned`: nobody vouches for it. `rejected`: its signature does not hold. */
  state: VerificationState;
  /** Who signed it. */
  curator?: string | null;
  /** With which key. */
  key?: string | null;
  /** Why that is not enough for it to run. */
  reason?: string | null;
}

export type PostMessage = {
  /** The text. */
  text?: string | null;
  /** Text, or the parts of the message. */
  content?: string | Array<TextPart | ImagePart> | null;
  /** Parts of the message. */
  parts?: Array<TextPart | ImagePart> | null;
  /** Text, or a message object. */
  message?: string | MessageObject | null;
  /** Chosen by the sender: the same id again is the same message. */
  messageId?: MessageId | null;
  /** Who answers; otherwise the space's agent, or the project's `default`. */
  agent?: AgentName | null;
  /** Tools that the caller executes itself. */
  clientTools?: NewClientTool[] | null;
  /** The sender, as a client that executes tools: calls are offered to it first. */
  executor?: MessageExecutor | null;
  /** Of the agent's client tools only those of these categories, and those of none. */
  selectedToolCategories?: string[] | null;
  /** Whether anybody answers; true unless said otherwise. */
  respond?: boolean | null;
  /** Whatever the sender attaches; never given to a model. */
  metadata?: Record<string, unknown> | null;
};

/** The message is stored. */
export interface Posted {
  /** Id of the message. */
  messageId: MessageId;
  /** Space that the message stands in. */
  spaceId: SpaceId;
  runId?: RunId | null;
  /** A cursor from which everything the message caused is seen. */
  seq: number;
}

/** What models cost. */
export interface Prices {
  /** Currency of the prices, such as `USD`. */
  currency: string;
  /** By model, as `provider:name` or by name alone. */
  models: Record<string, unknown>;
}

/** Why a request was not done (RFC 9457). */
export interface Problem {
  /** Always `about:blank`: `code` tells problems apart. */
  type: string;
  /** The status in words. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** What went wrong, for programs. */
  code: string;
  /** What went wrong, in words. */
  detail: string;
  /** Everything that is wrong with what was sent, each with its place. */
  errors?: Fault[];
  winner?: Any | null;
  claim?: Any | null;
  budget?: ExceededBudget | null;
  snapshot?: Any | null;
}

/** A project. Secrets are masked. */
export interface Project {
  /** The project's id. */
  id: ProjectId;
  /** Unique among projects. */
  name: string;
  /** Where the keys are published that sign the tokens of its users. */
  jwksUrl?: string | null;
  /** What `iss` of a token that those keys sign must be. */
  jwtIssuer?: string | null;
  /** What `aud` of a token that those keys sign must name. */
  jwtAudience?: string | null;
  /** Its settings, secrets masked. */
  settings: Record<string, unknown>;
  /** When it was created. */
  createdAt: Time;
}

/** A project. */
export type ProjectId = string;

/** The projects of the gateway. */
export interface ProjectList {
  /** By name. */
  projects: Project[];
}

/** An agent that was purged. */
export interface PurgedAgent {
  /** Name of the agent. */
  name: AgentName;
  /** What was deleted with it. */
  deleted: DeletedRecords;
}

/** A curator. Keys are added, or get other dates; those that are left out stay as they are. */
export interface PutCurator {
  /** Name for people. */
  name?: string | null;
  /** `{publicKey, id?, notBefore?, expires?}`: a PEM text, an id (else made from the key), and moments between which packages that it has signed can be installed. A moment that is left out stays; `null` takes it away. */
  keys?: Record<string, unknown>[] | null;
}

/** A document to store. */
export interface PutDocument {
  /** Unique in its collection: letters, digits, `_`, `-` and `.`. */
  id: string;
  /** Its name for people; by default its own. */
  title?: string | null;
  /** Where it comes from, for those who want to look. */
  source?: string | null;
  /** `text/plain`, `text/markdown` or `text/html`; plain text unless said otherwise. */
  mimeType?: string | null;
  /** All of it. */
  text: string;
}

/** Documents to store, each in place of the one with its id. */
export interface PutDocuments {
  /** The documents. */
  documents: PutDocument[];
}

/** What is known of an entity. What is left out is taken away. */
export interface PutEntity {
  /** `person`, `agent`, `device` or the project's own word; `person` unless said otherwise. */
  kind?: string | null;
  /** Its name for people. */
  name?: string | null;
  /** Whatever the project attaches. */
  metadata?: Record<string, unknown> | null;
  /** Permissions that it has in every space, for tools that need those of the person. */
  grants?: string[] | null;
}

/** What a member is and may do in a space. What is left out is taken away, unless all of it is. */
export interface PutMember {
  /** The project's word for what it is there, for tools that name their approvers by role. */
  role?: string | null;
  /** Permissions that it has there, beside those of its entity. */
  grants?: string[] | null;
}

/** What was done with a question. */
export type QuestionAction = 'accept' | 'decline' | 'cancel';

/** A question that a tool asks people in the middle of a call. */
export type QuestionId = string;

/** A page of open questions, newest run first. */
export interface QuestionList {
  /** The questions. */
  questions: OpenQuestion[];
  nextCursor?: RunId | null;
}

/** It takes work. */
export interface Ready {
  /** Always `ok`. */
  status: string;
  /** What an operator may want to know of it. */
  details: ReadyDetails;
}

/** What an operator may want to know. */
export interface ReadyDetails {
  /** How well notices travel between nodes: `direct` for a single node, `joined`, `doubtful` while another node is silent, `away` while the bus cannot be reached. Requests are served all the same, from the store. */
  bus: string;
  /** The sandbox that runs code of others. */
  sandbox: SandboxDetails;
}

/** A result is stored. The same result again gets the same receipt. */
export interface Receipt {
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Its run. */
  runId: RunId;
  /** The place of the event that settled it. */
  seq: number;
  /** When it was stored. */
  time: Time;
}

/** A client gives a call back. */
export interface ReleaseCall {
  /** The name it claimed the call with. */
  holder: string;
}

/** Which later calls a remembered yes stands for. */
export type Remember = 'first-in-space' | 'until-revoked';

/** Error of a tool that failed on the client. */
export interface ResultError {
  /** Error message. */
  message: string;
  /** Its class, as in JavaScript. */
  name?: string | null;
  /** For programs. */
  code?: string | null;
}

/** What became of each result, in the order they were sent. */
export interface ResultList {
  results: ResultOutcome[];
}

/** What became of one result. */
export interface ResultOutcome {
  /** The call as it was named. */
  toolCallId: string;
  receipt?: Receipt | null;
  error?: Problem | null;
}

/** What becomes of a plugin. */
export type ReviewAction = 'install' | 'upgrade' | 'downgrade' | 'replace' | 'none';

/** That something was revoked. */
export interface Revocation {
  /** Time of the revocation. */
  time: Time;
  /** Why, in the operator's words. */
  reason?: string | null;
}

/** What must not run any more: a package, or every stored package of a plugin. */
export interface RevokePlugin {
  /** Hash of the package, stored or not. */
  packageHash?: string | null;
  /** Id of the plugin. */
  plugin?: string | null;
  /** Why, for those who read the list. */
  reason?: string | null;
}

/** Where a plugin goes back to. */
export interface RollBackPlugin {
  /** Hash of a stored package of the plugin; the one before the current if it is left out. */
  packageHash?: string | null;
}

/** The answer to an offer. */
export interface RtcAnswer {
  /** Always `answer`. */
  type: string;
  /** The session description, with the addresses of the gateway: for `RTCPeerConnection.setRemoteDescription`. */
  sdp: string;
  /** Bytes of one message. */
  messageBytesMax: number;
}

/** An offer of one data channel. */
export interface RtcOffer {
  /** The session description: that of `RTCPeerConnection.createOffer` with one data channel labelled `tools`. */
  sdp: string;
  /** Its kind, as browsers write it. */
  type?: 'offer' | null;
  /** The `seq` of the last message that was read; everything when it is left out. */
  after?: number | null;
}

/** A run as it stands. */
export type Run = RunSummary & ({
  /** Calls, approvals and questions that the run waits for. */
  pending: Pending;
  /** Decisions of people on its calls, and the consents that its calls run by, oldest first. */
  decisions?: Decision[];
  /** Tokens that the run itself has used so far. */
  usage: Usage;
  totalUsage?: TotalUsage | null;
  /** The last words of the model. */
  text?: string | null;
  /** Why the run ended, or why the model stopped last: `stop`, `length`, `tool-calls`, `max-steps`, … */
  finishReason?: string | null;
  /** What went wrong; for backends only. */
  error?: string | null;
});

/** One activation of an agent. */
export type RunId = string;

/** A page of runs, newest first. */
export interface RunList {
  /** The runs: fewer than `limit`, even none, when the gateway has looked at many that do not fit. */
  runs: RunSummary[];
  nextCursor?: RunId | null;
}

/** Where a run stands after it was told to stop. */
export interface RunStopped {
  /** Id of the run. */
  runId: RunId;
  /** Status of the run. */
  status: Status;
}

/** A run's row. */
export interface RunSummary {
  /** Id of the run. */
  id: RunId;
  /** Space whose log has the run's events. */
  spaceId: SpaceId;
  /** Agent of the run. */
  agent: AgentName;
  /** Revision of the agent that the run follows. */
  revision: number;
  /** Status of the run. */
  status: Status;
  /** When the run was created. */
  createdAt: Time;
  /** When its last event was stored. */
  updatedAt: Time;
  parent?: CallId | null;
  /** The tool that the run is one call of, which no model wrote. */
  tool?: string | null;
  /** Place of its last event. */
  seq: number;
  rootId?: RunId | null;
  userId?: EntityId | null;
  /** How its first message begins; for backends only. */
  title?: string | null;
  /** Tokens that it has used, without those of its child runs; for backends only. */
  tokens?: number | null;
}

/** A run and all below it. */
export interface RunTreeBody {
  /** The run at the top, then those below it, oldest first. `parent` of each says which call started it. */
  runs: RunSummary[];
  /** Whether there are more than are told: the newest are left out. */
  truncated: boolean;
}

/** What is said aloud. */
export interface SaidTool {
  /** The text; null if the tool has none, its voice is off, or a variable has no value and there is no fallback. */
  text?: string | null;
  /** Whether the fallback stands in for the template. */
  fallback: boolean;
  /** Variables that have no value. */
  missing: string[];
}

/** How the sandbox is protected. */
export interface SandboxDetails {
  /** Protections that this machine lacks, of `seccomp`, `landlock`, `no-new-privileges`, `descriptors`; `worker` when no process can be started. The log says why. */
  missing: string[];
}

/** What to say. */
export interface SayTool {
  /** Which text. */
  kind: 'prompt' | 'feedback';
  /** Values of the variables. Those of a feedback are also looked for in its `data`. */
  context?: Record<string, unknown> | null;
  /** The agent that has the tool, where several have different tools of the name. */
  agent?: AgentName | null;
  /** Also, for a user, tools of the agent that a backend gave this space. */
  spaceId?: SpaceId | null;
}

/** Who is asking. */
export interface Session {
  /** What was shown: `session`, `key`, or `open` where no keys are asked for. */
  kind: string;
  id?: SessionId | null;
  /** The project. */
  project: SessionProject;
  /** Whether it may manage projects too. */
  operator: boolean;
  /** What a session sends as `x-toolgate-csrf` with every request that is not a GET. */
  csrfToken?: string | null;
  createdAt?: Time | null;
  lastUsedAt?: Time | null;
  expiresAt?: Time | null;
}

/** A browser that has signed in. */
export type SessionId = string;

/** The sessions of a project. */
export interface SessionList {
  /** Those that were used last come first. */
  sessions: ListedSession[];
}

/** The project that a session belongs to. */
export interface SessionProject {
  /** Id of the project. */
  id: ProjectId;
  /** Its name. */
  name: string;
}

/** A tool that agents use by its name. Keys in its definition are masked. */
export interface SharedTool {
  /** What agents and models call it. Unique in the project. */
  name: string;
  /** Higher with each change; also in `etag`. */
  version: number;
  /** The definition as it was written, keys masked. */
  definition: Record<string, unknown>;
  /** When it was first stored. */
  createdAt: Time;
  /** When it was last changed. */
  updatedAt: Time;
}

/** The shared tools of a project. */
export interface SharedToolList {
  /** By name. */
  sharedTools: SharedTool[];
}

/** Something happened that a call waits for. */
export interface SignalCall {
  /** What the call gives for it: any JSON. */
  value: unknown;
}

/** A signed package. */
export interface SignedBody {
  /** The document with its hashes and signatures. */
  document: Record<string, unknown>;
  /** The audit report: size, constructs in the code, permissions asked for, hosts that it names, warnings. */
  audit: Record<string, unknown>;
}

/** A tool as it is understood. */
export interface SoundTool {
  /** What the model calls it. */
  name: string;
  /** Description that the model is given. */
  description: string;
  /** JSON Schema of the input. */
  parameters: Record<string, unknown>;
  /** Placement: where the tool runs. */
  placement: Placement;
  /** How long a call may take, with its unit: `30s`, `500ms`. */
  timeout: string;
  /** Its author's number for this state of it. */
  version?: string | null;
  /** Set when it should not be used any more: why. */
  deprecated?: string | null;
  /** SHA-256 of the definition, in hex. */
  hash: string;
}

/** A shared conversation. */
export interface Space {
  /** Id of the space. */
  id: SpaceId;
  /** Its name for people. */
  title?: string | null;
  agent?: AgentName | null;
  /** Whatever the project attached. */
  metadata?: Record<string, unknown> | null;
  /** Who takes part, in the order they joined. */
  members: EntityId[];
  /** When it was created. */
  createdAt: Time;
}

/** A shared conversation. */
export type SpaceId = string;

/** A page of spaces, newest first. */
export interface SpaceList {
  /** The spaces. */
  spaces: Space[];
  nextCursor?: SpaceId | null;
}

export type StartRun = {
  /** The text. */
  text?: string | null;
  /** Text, or the parts of the message. */
  content?: string | Array<TextPart | ImagePart> | null;
  /** Parts of the message. */
  parts?: Array<TextPart | ImagePart> | null;
  /** Text, or a message object. */
  message?: string | MessageObject | null;
  /** Chosen by the sender: the same id again is the same message. */
  messageId?: MessageId | null;
  /** Who answers; otherwise the space's agent, or the project's `default`. */
  agent?: AgentName | null;
  /** Where; otherwise in a space that is made for this run. */
  space?: SpaceId | null;
  /** The same as `space`. */
  spaceId?: SpaceId | null;
  /** Tools that the caller executes itself. */
  clientTools?: NewClientTool[] | null;
  /** The sender, as a client that executes tools: calls are offered to it first. */
  executor?: MessageExecutor | null;
  /** Of the agent's client tools only those of these categories, and those of none. */
  selectedToolCategories?: string[] | null;
  /** What was said before: the past of a space that the run makes, and for an agent with `history: client`. In a space that is there, other agents go by its log, and it is refused: 409 `HISTORY_NOT_TAKEN`. */
  history?: ChatMessage[] | null;
  /** Whatever the sender attaches; never given to a model. */
  metadata?: Record<string, unknown> | null;
};

export type Status = 'queued' | 'running' | 'waiting_tool' | 'waiting_approval' | 'waiting_time' | 'completed' | 'failed' | 'cancelled';

/** What became of a document: stored, or why not. */
export interface StoredDocument {
  /** Id of the document. */
  id: string;
  document?: Document | null;
  error?: DocumentError | null;
}

/** What became of each document, in the order of the request. */
export interface StoredDocuments {
  /** One for each document. */
  documents: StoredDocument[];
}

/** What became of what was sent. */
export type Taken = Receipt | ResultList;

/** What became of what was sent; with the run when that was waited for. */
export type TakenAndRun = Taken & ({
  run?: Run | null;
});

/** A part of a message that is text. */
export interface TextPart {
  /** Always `text`. */
  type: 'text';
  /** The text. */
  text: string;
}

export type Time = string;

/** A tool of an agent, or one that agents share. */
export interface Tool {
  /** What the model calls it. */
  name: string;
  /** What people call it. */
  title?: string | null;
  agent?: AgentName | null;
  /** Where its definition comes from: `agent`, `shared`, `built-in`, `plugin`, `mcp`; for backends only. */
  source?: string | null;
  /** Description that the model is given. */
  description: string;
  /** JSON Schema of the input. */
  parameters: Record<string, unknown>;
  /** Placement: where the tool runs. */
  placement: Placement;
  /** Category, for people who choose tools. */
  category?: string | null;
  /** Words of a person that suggest it. */
  triggers?: string[];
  voice?: Voice | null;
  /** What the agent must have been granted; for backends only. */
  permissions?: string[];
  /** Its author's number for this state of it. */
  version?: string | null;
  /** Set when it should not be used any more: why. */
  deprecated?: string | null;
  plugin?: PluginOfTool | null;
}

/** A call as it stands. */
export interface ToolCall {
  /** The run that is this call. */
  runId: RunId;
  /** Id of the tool call. */
  toolCallId: CallId;
  /** Space of the run. */
  spaceId: SpaceId;
  /** Status of the run: `completed` when the call gave an output, `failed` when it gave an error. */
  status: Status;
  output?: Any | null;
  /** The author's message on a deprecated tool. */
  warning?: string | null;
  error?: CallError | null;
  pending?: Pending | null;
}

/** Tools as a vendor's models are told of them. */
export interface ToolDefinitions {
  /** What stands under `tools` in a request to that vendor, to the letter. */
  tools: Any[];
}

/** Calls of all tools together. */
export interface ToolFigures {
  /** The first day that is counted. */
  since: Time;
  /** Calls that ended. */
  calls: number;
  /** Of those, how many gave no output. */
  failed: number;
  /** Those by error code. */
  failures: Record<string, unknown>;
  latencyMs?: Latency | null;
}

/** A list of tools. */
export interface ToolList {
  /** By agent, then by name; then the shared tools by name. */
  tools: Tool[];
}

/** A tool that the utterance may mean, and why. */
export interface ToolMatch {
  /** Name of the tool. */
  name: string;
  /** What people call it. */
  title?: string | null;
  agent?: AgentName | null;
  /** All agents that have the same definition of the tool, if there are several. */
  agents?: AgentName[];
  /** From 0 to 1, with three decimals; comparable within one answer. */
  score: number;
  /** The trigger, as its author wrote it. */
  trigger: string;
  /** Its words stand in the utterance: `in-a-row`, `apart`, `reordered`. */
  order: TriggerOrder;
  /** Each word of the trigger, with what was said for it. */
  words: MatchedWord[];
  /** What is said aloud to propose it, with what the context holds. */
  voice?: string | null;
}

/** Tools that the utterance may mean. */
export interface ToolMatches {
  /** Best first. */
  matches: ToolMatch[];
}

export type ToolResults = OneResult | ManyResults;

/** The figures of a tool. */
export interface ToolUsage {
  /** Name of the tool. */
  name: string;
  /** From when: days are counted whole, in UTC. */
  since: Time;
  /** Calls that ended, with or without an output. */
  calls: number;
  /** Calls that gave no output. */
  failed: number;
  /** Those, by their code. */
  failures: Record<string, unknown>;
  latencyMs?: Latency | null;
}

/** What a root run and all child runs below it have cost together. */
export interface TotalUsage {
  /** Tokens, read and written. */
  tokens: number;
  /** Child runs at any depth; for backends only. */
  childRuns?: number | null;
}

/** How the words of a trigger stand in an utterance. */
export type TriggerOrder = 'in-a-row' | 'apart' | 'reordered';

/** What a run has cost. */
export interface Usage {
  /** Tokens read. */
  inputTokens: number;
  /** Tokens written, reasoning included. */
  outputTokens: number;
  /** Of those written, how many were reasoning. */
  reasoningTokens?: number | null;
  /** Of those read, how many came from the vendor's cache. */
  cachedTokens?: number | null;
  /** The vendor has reported none, at least for a part: it was estimated from bytes. */
  estimated?: boolean | null;
}

/** What a project has consumed: a page of groups, and the sum over all of them. */
export interface UsageReport {
  /** The first day, in UTC. */
  from: string;
  /** The last day, which is included. */
  to: string;
  /** Currency of the costs. */
  currency: string;
  /** All groups together. */
  total: UsageSums;
  /** The groups, in the order of their keys. */
  rows: UsageRow[];
  /** What to give as `after` for the next page; null on the last. */
  nextCursor?: string | null;
}

/** One group. */
export type UsageRow = UsageSums & ({
  /** The day, the agent, the id of the user or the model as `provider:name`; null for runs that work for no user. */
  key?: string | null;
  /** Subject of the user, as its tokens name it; for groups by user alone. */
  subject?: string | null;
});

/** What was consumed. */
export interface UsageSums {
  /** Runs that were created, child runs and requested calls among them. */
  runs: number;
  /** Replies of models: steps, summaries, and what tools had a model asked. */
  requests: number;
  /** Tokens read. */
  inputTokens: number;
  /** Tokens written, reasoning included. */
  outputTokens: number;
  /** Of those read, how many came from the vendor's cache. */
  cachedTokens: number;
  /** Cost by the prices at the time of each request. */
  cost: number;
  /** Requests to models that had no price: their cost is unknown, and not in `cost`. */
  unpricedRequests: number;
}

/** Definitions to check. */
export interface ValidateTools {
  /** A definition, or a list of them. */
  tools: Definition | Definition[];
  /** By which rules: `client`, those for tools that come with a request, unless said otherwise; `trusted`, those for an agent's tools, for backends only. */
  profile?: 'client' | 'trusted' | null;
}

/** What is to be said of definitions. */
export interface Validated {
  /** Nothing is wrong. */
  valid: boolean;
  /** Everything that is wrong, each with its place. */
  errors: Fault[];
  /** What is sound and yet worth knowing, each with its place. */
  warnings: Fault[];
  /** The tools as they are understood, in the order they were written; none unless all are sound. */
  tools: SoundTool[];
}

/** What a signature was found to be. */
export type VerificationState = 'verified' | 'tools-only' | 'unsigned' | 'rejected';

/** What is said aloud of the calls of a tool. */
export interface Voice {
  prompt?: VoiceText | null;
  feedback?: VoiceText | null;
  /** `false` if events do not carry the texts. */
  enabled?: boolean | null;
}

/** A text with `{variables}`. */
export interface VoiceText {
  /** The text, with `{name}` or `{path.to.value}` where a value is spoken. */
  template: string;
  /** Variables without which the fallback is said. */
  requiresContext?: string[] | null;
  /** Said when a variable has no value. */
  fallback?: string | null;
}

/** Runs that wait for somebody. */
export interface Waiting {
  /** Those that wait for a client to execute a call. */
  calls: number;
  /** Those that wait for a person to approve a call or to answer a question. */
  approvals: number;
}

export interface RunStartEvent {
  type: 'run-start';
  agent: AgentName;
  revision: number;
  model: unknown;
  entity?: EntityId;
  parent?: CallId;
  depth: number;
  clientTools?: ClientTool[];
  behind?: string;
  budget?: unknown;
  unknownRequester?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  resultSchema?: unknown;
  categories?: unknown;
  history?: unknown;
  tools: unknown;
  toolVersions?: unknown;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface MessageEvent {
  type: 'message';
  message: Message;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface HistoryEvent {
  type: 'history';
  turns: unknown;
  from?: EntityId;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface CallRequestEvent {
  type: 'call-request';
  toolName: string;
  input?: unknown;
  from?: EntityId;
  sender?: unknown;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ContextCutEvent {
  type: 'context-cut';
  agent: AgentName;
  from: number;
  told?: number;
  resultBytes?: number;
  summary?: string;
  usage?: Usage;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface StepStartEvent {
  type: 'step-start';
  step: number;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface StepRetryEvent {
  type: 'step-retry';
  step: number;
  attempt: number;
  error?: string;
  notBefore: Time;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface TextStartEvent {
  type: 'text-start';
  id: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface TextDeltaEvent {
  type: 'text-delta';
  id: string;
  delta: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface TextEndEvent {
  type: 'text-end';
  id: string;
  text: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ReasoningStartEvent {
  type: 'reasoning-start';
  id: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ReasoningDeltaEvent {
  type: 'reasoning-delta';
  id: string;
  delta: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ReasoningEndEvent {
  type: 'reasoning-end';
  id: string;
  text: string;
  signature?: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolInputStartEvent {
  type: 'tool-input-start';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolInputDeltaEvent {
  type: 'tool-input-delta';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  inputTextDelta: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolInputAvailableEvent {
  type: 'tool-input-available';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  input?: unknown;
  deadline?: Time;
  signature?: string;
  reserved?: Claim;
  consent?: ConsentUse;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolApprovalRequestEvent {
  type: 'tool-approval-request';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  approvalId: ApprovalId;
  input?: unknown;
  expiresAt: Time;
  terms?: unknown;
  voice?: SpokenText;
  mayDecide?: boolean;
  editable?: boolean;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolApprovalResponseEvent {
  type: 'tool-approval-response';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  approvalId: ApprovalId;
  approved: boolean;
  reason?: string;
  input?: unknown;
  by?: EntityId;
  expired?: boolean;
  deadline?: Time;
  reserved?: Claim;
  inputHash?: string;
  remembered?: boolean;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolQuestionEvent {
  type: 'tool-question';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  questionId: QuestionId;
  key?: string;
  message: string;
  schema?: unknown;
  url?: string;
  expiresAt: Time;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolQuestionResponseEvent {
  type: 'tool-question-response';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  questionId: QuestionId;
  action: 'accept' | 'decline' | 'cancel';
  content?: unknown;
  by?: EntityId;
  expired?: boolean;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolSamplingEvent {
  type: 'tool-sampling';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  number: number;
  usage: Usage;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolExecutingEvent {
  type: 'tool-executing';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  claim?: Claim;
  child?: RunId;
  pause?: unknown;
  task?: unknown;
  childStatus?: unknown;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolReleasedEvent {
  type: 'tool-released';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolProgressEvent {
  type: 'tool-progress';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  progress?: unknown;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolOutputAvailableEvent {
  type: 'tool-output-available';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  output?: unknown;
  warning?: string;
  log?: string;
  voice?: SpokenText;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolOutputErrorEvent {
  type: 'tool-output-error';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  code?: 'NOT_FOUND' | 'VALIDATION_FAILED' | 'PREREQUISITES_NOT_MET' | 'PERMISSION_DENIED' | 'LIMIT_EXCEEDED' | 'DENIED' | 'TIMEOUT' | 'CANCELLED' | 'SUPERSEDED' | 'EXECUTION_FAILED' | 'INTERRUPTED' | 'UNAVAILABLE' | 'INVALID_OUTPUT';
  errorText?: string;
  log?: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface ToolOutputDeniedEvent {
  type: 'tool-output-denied';
  toolCallId: CallId;
  toolName: string;
  placement: Placement;
  shown?: boolean;
  offeredTo?: EntityId;
  givenName?: string;
  agent?: AgentName;
  childRunId?: RunId;
  reason?: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface StepFinishEvent {
  type: 'step-finish';
  step: number;
  reason: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
  usage: Usage;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface RunStatusEvent {
  type: 'run-status';
  status: Status;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface RunFinishEvent {
  type: 'run-finish';
  status: Status;
  reason: 'stop' | 'length' | 'content-filter' | 'max-steps' | 'limit' | 'model-error' | 'invalid-output' | 'tool-error' | 'cancelled';
  usage: Usage;
  error?: string;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

export interface NotificationEvent {
  type: 'notification';
  title: string;
  body?: string;
  messageId?: MessageId;
  seq: number;
  spaceId: SpaceId;
  runId?: RunId;
  time: Time;
}

/** What a person, a backend or a plan wrote into a space. */
export interface Message {
  messageId: MessageId;
  from?: EntityId;
  /** What was known of the sender; for backends. */
  sender?: {
    name?: string;
    timeZone?: string;
  };
  parts: Array<TextPart | ImagePart>;
  metadata?: unknown;
  /** What posted it, where no user and no backend did: never to be shown as a user's words. */
  origin?: {
    type: 'plan';
    planId: string;
    dueAt: Time;
  };
  /** Who asked for the plan that posted it, or wrote to the run above. */
  onBehalfOf?: EntityId[];
}

/** What is said aloud of a call, as far as the reader may know it. */
export interface SpokenText {
  text: string;
  /** What is said to those who may not see what the variables hold; for backends. */
  plain?: string;
  /** The variables that the text speaks; for backends. */
  from?: string[];
}

/** The remembered yes that a call runs by. */
export interface ConsentUse {
  consentId: string;
  by?: EntityId;
  givenAt: Time;
}
