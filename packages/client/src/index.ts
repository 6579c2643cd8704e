export { pause } from './back-off.js';
export { CallEnded, type CallGateway, type CallJob, CallRunner, type Fate } from './call-runner.js';
export type { CallerContext } from './caller-contexts.js';
export type { Calls } from './calls.js';
export * from './chunk.js';
export { type ClientEvents, ToolgateClient, type ToolgateClientOptions } from './client.js';
export type { ConnectionOptions } from './connection.js';
export type { Consents } from './consents.js';
export type { Content } from './content.js';
export type { HistoryMessage, HistoryOptions } from './conversation-history.js';
export type { Curators } from './curators.js';
export { DECISION_WORDS, type DecisionOptions, type DecisionWords, readDecision } from './decision-words.js';
export { initializeToolRegistry } from './default-registry.js';
export { safeValidateToolDefinitions, type Validation, validateToolDefinitions } from './definition-rules.js';
export type { Entities } from './entities.js';
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
export type { GatewayInfo } from './gateway-info.js';
export type { InstalledPlugins, PluginPackageSource } from './installed-plugins.js';
export type * from './json-schema.js';
export type { Keys } from './keys.js';
export type { DocumentQuery, Knowledge, PutDocument } from './knowledge.js';
export type { McpServers } from './mcp-servers.js';
export type * from './operator-wire.js';
export {
  definePlugin,
  type Executors,
  type PluginHooks,
  type PluginTool,
  type ToolgatePlugin,
} from './plugin.js';
export type { Projects } from './projects.js';
export type { RecordOwner, Records } from './records.js';
export type {
  Agents,
  Approvals,
  CallOptions,
  EventQuery,
  Questions,
  RunQuery,
  Runs,
  Spaces,
} from './resources.js';
export { type Reference, RtcChannel, type RtcOptions, type SendOptions } from './rtc-channel.js';
export type { RunWatch, WatchOptions } from './run-watch.js';
export { defineTool } from './runnable.js';
export { type AnswerableMessage, sendWhenAnswered } from './send-when-answered.js';
export type { Sessions } from './sessions.js';
export type * from './standard-schema.js';
export { readTimeout } from './timeout.js';
export type * from './tool.js';
export {
  createToolMessage,
  deserializeMessage,
  serializeMessage,
  type ToolDataChannelMessage,
  ToolEventType,
  toolMessageOf,
} from './tool-message.js';
export {
  type ExecutedCall,
  type ExecutionContext,
  type ToolBroadcaster,
  type ToolMetadata,
  ToolOrchestrator,
} from './tool-orchestrator.js';
export { type ToolPluginCheck, ToolPluginSchema } from './tool-plugin-schema.js';
export { type RegisteredTool, type ToolPlugin, ToolRegistry, type VoicePrompt } from './tool-registry.js';
export { createErrorResult, type ErrorResult, ToolErrorCode } from './tool-result.js';
export { type ServeConnection, type ServeOptions, ToolServer } from './tool-server.js';
export { Permission, ToolCategory } from './tool-vocabulary.js';
export type {
  CallToolOptions,
  ClaimOptions,
  ReleaseOptions,
  RunResult,
  SpaceResult,
  ToolFormat,
  ToolOutcome,
  ToolQuery,
  Tools,
} from './tools.js';
export type { ProjectUsage, UsageQuery } from './usage.js';
export { createVoiceFeedbackInjector, VoiceFeedbackInjector } from './voice-feedback-injector.js';
export type * as wire from './wire.js';
