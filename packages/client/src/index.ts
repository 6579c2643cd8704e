export { type CallJob, CallRunner, type Fate } from './call-runner.js';
export type { Calls } from './calls.js';
export * from './chunk.js';
export { type ClientEvents, ToolgateClient, type ToolgateClientOptions } from './client.js';
export type { ConnectionOptions } from './connection.js';
export type { Content } from './content.js';
export { safeValidateToolDefinitions, type Validation, validateToolDefinitions } from './definition-rules.js';
export {
  AbortedError,
  AccessError,
  ConflictError,
  ConnectionError,
  type ErrorDetails,
  GoneError,
  NotFoundError,
  PluginError,
  ProtocolError,
  RateLimitedError,
  TimeoutError,
  ToolError,
  ToolgateError,
  UnavailableError,
  ValidationError,
} from './error.js';
export {
  type Delivered,
  type EventOf,
  EventStream,
  type StreamNotes,
  type SubscribeOptions,
} from './event-stream.js';
export type { DeleteOptions, FileContent, Files, LinkOptions, Only, WriteOptions } from './files.js';
export type * from './json-schema.js';
export type { DocumentQuery, Knowledge, PutDocument } from './knowledge.js';
export type * from './plugin.js';
export type { Agents, Approvals, CallOptions, Questions, RunQuery, Runs, Spaces } from './resources.js';
export { defineTool } from './runnable.js';
export { type AnswerableMessage, sendWhenAnswered } from './send-when-answered.js';
export type * from './standard-schema.js';
export type * from './tool.js';
export { type ServeOptions, ToolServer } from './tool-server.js';
export type {
  ClaimOptions,
  ReleaseOptions,
  RunResult,
  SpaceResult,
  ToolFormat,
  ToolOutcome,
  ToolQuery,
  Tools,
} from './tools.js';
export type * as wire from './wire.js';
