/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A JSON Schema of an object. */
export type ObjectSchema = { type: 'object'; [keyword: string]: unknown };

/** What the sandbox gives the code: storage, or requests to a host or to every host below a domain. */
export type Permission = 'storage' | `fetch:${string}`;

/** A text that is said aloud, with `{variables}`. */
export type VoicePrompt = string | { template: string; requiresContext?: string[]; fallback?: string };

/** The definition of a tool, as the gateway and the model see it. */
export interface ToolDefinition {
  /** `[A-Za-z_][A-Za-z0-9_-]{0,63}`, unique in a project. */
  name: string;
  /** What people call it. */
  title?: string;
  /** What it does and when to use it, for the model: 1 to 1024 characters. */
  description: string;
  /** JSON Schema of the input; any object by default. */
  parameters?: ObjectSchema;
  /** JSON Schema of the output; an output that does not match is an error. */
  outputSchema?: Record<string, unknown> | boolean;
  /** Seconds, or a text such as `30s` or `500ms`. */
  timeout?: number | string;
  /** Whether it may run again after a crash in the middle; `never` by default. */
  retry?: 'never' | 'safe';
  /** Who may see input and output besides the project's backends; `private` by default. */
  visibility?: 'private' | 'public';
  /** Whether a person has to approve a call first, and whether that is remembered; `never` by default. */
  approval?: 'never' | 'always' | 'first-in-space' | 'until-revoked' | Record<string, unknown>;
  /** How long a call waits for an approval: seconds, or a text such as `5m`; a day by default. */
  approvalTimeout?: number | string;
  category?: string;
  triggers?: string[];
  /** What the agent must have been granted. */
  permissions?: string[];
  /** What the person must have been granted. */
  personPermissions?: string[];
  /** Tools of the same package that must have given an output before. */
  prerequisites?: Array<string | { tool: string; scope?: 'run' | 'space'; within?: number | string }>;
  /** What is said aloud of its calls. */
  voice?: { prompt?: VoicePrompt; feedback?: VoicePrompt; enabled?: boolean };
  /** Said when a call needs a yes; the same as `voice.prompt`. */
  voicePrompt?: VoicePrompt;
  /** Said when a call has given an output; the same as `voice.feedback`. */
  voiceFeedback?: VoicePrompt;
  /** Whether events carry the texts; the same as `voice.enabled`. */
  voiceEnabled?: boolean;
  /** Set when it should not be used any more; the words travel with the result. */
  deprecated?: boolean | string;
  version?: string;
}

/** A tool of a package: its definition and its code. */
export interface PackageTool extends ToolDefinition {
  /** Body of an async function with the parameter `args`; what it returns is the output. */
  executorCode: string;
}

/** A plugin package. */
export interface PluginPackage {
  $schema?: 'urn:toolgate:schema:plugin:1';
  /** `[a-z0-9][a-z0-9-]{0,63}`. */
  id: string;
  /** Name for people. */
  name: string;
  /** Semantic version, such as `1.2.0`. */
  version: string;
  description?: string;
  tools: PackageTool[];
  permissions?: Permission[];
  /** Other plugins by id, each with a version range such as `^1.2` or `>=1.2, <3`. */
  dependencies?: Record<string, string>;
  /** Range of gateway versions that it works with, such as `>=0.1`. */
  engine?: string;
  /** Where a copy can be fetched. No signature covers it. */
  sourceUrl?: string;
}

/** A package that a curator has signed. */
export interface SignedPackage extends PluginPackage {
  /** SHA-256 of the canonical JSON of `tools`, in hex. */
  contentHash: string;
  /** Signature of `contentHash`, in base64. */
  signature: string;
  /** SHA-256 of the canonical JSON of the whole document without its signatures, in hex. */
  packageHash?: string;
  /** Signature of `toolgate-plugin-v1:` followed by `packageHash`, in base64. */
  packageSignature?: string;
  curatorId: string;
  keyId?: string;
}
