'use client';

export { type ChatOptions, type ChatSnapshot, type ChatStatus, ChatStore } from './chat-store.js';
export { useToolgateClient } from './context.js';
export { type Conversation, callsOf, EMPTY_CONVERSATION, fold, openApprovals } from './conversation.js';
export { type Connection, type ConversationSnapshot, ConversationStore } from './conversation-store.js';
export { Markdown } from './markdown.js';
export {
  type Approval,
  isFinished,
  isSettled,
  type Message,
  type MessagePart,
  type Placement,
  type Question,
  type Run,
  type RunStatus,
  type ToolCall,
  type ToolCallState,
} from './message.js';
export { SpaceStore, spaceStore } from './space-store.js';
export { type ToolDefinition, type ToolHandler, type Tools, type TypedTool, tool } from './tool.js';
export type { ToolComponentProps, ToolComponents } from './tool-component.js';
export { type OnUnmount, ToolExecutor, type ToolOffer, type ToolSource } from './tool-executor.js';
export { ToolgateChat, type ToolgateChatProps } from './toolgate-chat.js';
export {
  type Token,
  ToolgateChatProvider,
  type ToolgateChatProviderProps,
} from './toolgate-chat-provider.js';
export { type Approvals, useApprovals } from './use-approvals.js';
export { type AutoToolHandlerOptions, useAutoToolHandler } from './use-auto-tool-handler.js';
export { type RunView, useRun } from './use-run.js';
export { useSpace } from './use-space.js';
export { type ToolResult, type ToolResultSubmission, useToolResult } from './use-tool-result.js';
export {
  type SpeechPorts,
  type ToolVoice,
  type ToolVoiceOptions,
  useToolVoice,
  type VoiceAnswer,
} from './use-tool-voice.js';
export { type ToolgateChatView, useToolgateChat } from './use-toolgate-chat.js';
