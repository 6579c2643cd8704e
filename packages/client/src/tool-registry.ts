import type { ToolgateClient } from './client.js';
import type { Connection } from './connection.js';
import { defaultRegistry } from './default-registry.js';
import { CODES, NotFoundError, ValidationError } from './error.js';
import type { JsonSchema } from './json-schema.js';
import type { CallOptions } from './resources.js';
import type { StandardSchema } from './standard-schema.js';
import type { ToolContext } from './tool.js';
import type { ToolCategory } from './tool-vocabulary.js';
import type { ClearedTools, SharedTool, SharedToolList } from './wire.js';

/** A text that is said aloud, with `{variables}`. */
export type VoicePrompt =
  | string
  | {
      template: string;
      /** Variables without which the fallback is said. */
      requiresContext?: readonly string[];
      /** Said when a variable has no value, or one that the listener may not know. */
      fallback?: string;
    };

// biome-ignore lint/suspicious/noExplicitAny: the shape of the arguments is known to whoever wrote the schema
type Handler = (args: any, context: ToolContext) => unknown;

/** A tool that agents use by its id. It runs on the client unless `executionType` says otherwise. */
export interface RegisteredTool {
  /** What agents and models call it, unique in the project. */
  id: string;
  /** What people call it. */
  name?: string;
  /** What it does and when to use it, for the model; the name by default. */
  description?: string;
  /** Arguments: a zod, valibot or other Standard Schema that can generate JSON Schema, or JSON Schema. */
  schema?: StandardSchema | JsonSchema;
  category?: ToolCategory | (string & {});
  voicePrompt?: VoicePrompt;
  voiceFeedback?: VoicePrompt;
  /** Whether events carry the texts; true by default. */
  voiceEnabled?: boolean;
  /** Words of a person that suggest it. */
  triggers?: readonly string[];
  /** Tools that must have given an output before. */
  prerequisites?: readonly unknown[];
  /** What the agent must have been granted. */
  permissions?: readonly string[];
  /** `never`, `always`, `first-in-space`, `until-revoked`, or a rule. */
  approval?: unknown;
  executionType?: string;
  execution?: unknown;
  /** Executes it on this client, when given to `tools.serve`; not sent. */
  handler?: Handler;
  /** A component for its result, for the page that shows it; not sent. */
  uiComponent?: unknown;
  /** Any other member of a definition, such as `timeout` or `visibility`. */
  [member: string]: unknown;
}

/** A tool that is executed here: its definition for `ToolRegistry`, and its handler for `tools.serve`. */
export interface ToolPlugin extends RegisteredTool {
  handler: Handler;
}

/** Tools that the agents of a project share, kept by the gateway; needs a secret key. */
export class ToolRegistry {
  /** The client that the registry belongs to. */
  readonly client: ToolgateClient;
  readonly #connection: Connection;
  constructor(connection: Connection, client: ToolgateClient) {
    this.#connection = connection;
    this.client = client;
  }

  /**
   * The default registry: the one that `initializeToolRegistry` was last given, or that of the gateway which `TOOLGATE_URL` and
   * `TOOLGATE_SECRET_KEY` name. Throws a `ValidationError` if there is neither.
   */
  static getInstance(): ToolRegistry {
    return defaultRegistry();
  }

  /** Stores a new tool. A `ValidationError` lists what is wrong with it; an id that is taken is a `ConflictError`. */
  register(tool: RegisteredTool, options: CallOptions = {}): Promise<SharedTool> {
    return this.#put(tool, { ...options, headers: { 'if-none-match': '*' } });
  }

  /** Stores a tool in place of the one with its id, if there is one. */
  replace(tool: RegisteredTool, options: CallOptions = {}): Promise<SharedTool> {
    return this.#put(tool, { ...options, safe: true });
  }

  /** A tool by its id; `undefined` if there is none. */
  async get(id: string, options: CallOptions = {}): Promise<SharedTool | undefined> {
    try {
      return await this.#connection.json<SharedTool>(path(id), options);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  /** Whether there is a tool with this id. */
  async has(id: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.get(id, options)) !== undefined;
  }

  /** All tools, by id. */
  getAll(options: CallOptions = {}): Promise<SharedTool[]> {
    return this.#list({}, options);
  }

  /** Tools with these words in a row in one of their triggers; case and accents do not matter. */
  getByTrigger(trigger: string, options: CallOptions = {}): Promise<SharedTool[]> {
    return this.#list({ trigger }, options);
  }

  /** Tools of a category; case does not matter. */
  getByCategory(category: ToolCategory | (string & {}), options: CallOptions = {}): Promise<SharedTool[]> {
    return this.#list({ category }, options);
  }

  /** Tools that need a permission. */
  getByPermission(permission: string, options: CallOptions = {}): Promise<SharedTool[]> {
    return this.#list({ permission }, options);
  }

  /** Removes a tool. False if there is none. */
  async unregister(id: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#connection.json(path(id), { ...options, method: 'DELETE' });
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Removes all tools of the project, and says how many there were. Agents that name them go without them. */
  async clear(options: CallOptions = {}): Promise<number> {
    const cleared = this.#connection.json<ClearedTools>('/v1/shared-tools', {
      ...options,
      method: 'DELETE',
      query: { confirm: 'all' },
    });
    return (await cleared).removed;
  }

  async #list(query: Record<string, string>, options: CallOptions): Promise<SharedTool[]> {
    const list = this.#connection.json<SharedToolList>('/v1/shared-tools', { ...options, query });
    return (await list).sharedTools;
  }

  #put(
    tool: RegisteredTool,
    options: CallOptions & { headers?: Record<string, string>; safe?: boolean },
  ): Promise<SharedTool> {
    return this.#connection.json(path(tool.id), { ...options, method: 'PUT', body: definition(tool) });
  }
}

function path(id: string): string {
  return `/v1/shared-tools/${encodeURIComponent(id)}`;
}

/** The definition as the gateway reads it; functions and components stay here. */
function definition({ schema, description, ...tool }: RegisteredTool): Record<string, unknown> {
  const kept = Object.entries(tool).filter(
    ([name, value]) => typeof value !== 'function' && name !== 'handler' && name !== 'uiComponent',
  );
  return {
    ...Object.fromEntries(kept),
    description: description ?? tool.name ?? tool.id,
    ...(schema === undefined ? {} : { parameters: parameters(tool.id, schema) }),
  };
}

function parameters(id: string, schema: StandardSchema | JsonSchema): unknown {
  if (!('~standard' in schema)) return schema;
  const { jsonSchema } = (schema as StandardSchema)['~standard'];
  if (jsonSchema) return jsonSchema.input({ target: 'draft-2020-12' });
  throw new ValidationError(
    CODES.validation,
    `the schema of ${id} cannot generate JSON Schema; give JSON Schema instead`,
  );
}
