import { ToolgateClient } from '@toolgate/client';
import { type ReactNode, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { type ChatOptions, ChatStore } from './chat-store.js';
import { ToolgateContext } from './context.js';
import type { Tools } from './tool.js';
import type { ToolComponents } from './tool-component.js';
import type { OnUnmount } from './tool-executor.js';
import { useAutoToolHandler } from './use-auto-tool-handler.js';

/**
 * A user's JWT, or a function that returns one. The function is called for each request, so it may renew the
 * JWT.
 */
export type Token = string | (() => string | Promise<string>);

export interface ToolgateChatProviderProps {
  /** The gateway's URL; the page's own origin by default. */
  readonly url?: string;
  /** Alias of `url`. */
  readonly gatewayUrl?: string;
  /** The project's public key, `pk_…`, together with a `token`. */
  readonly publicKey?: string;
  /** The user's JWT, signed by your backend. */
  readonly token?: Token;
  /** Alias of `token`. */
  readonly jwt?: Token;
  /** A secret key, for trying out. It gives access to everything: never ship it to a browser. */
  readonly secretKey?: string;
  /** A client of your own instead of the props above. */
  readonly client?: ToolgateClient;
  /** The agent that answers; the default agent by default. */
  readonly agent?: string;
  /** The space to open. Without one, the first message creates one. */
  readonly defaultSpaceId?: string;
  /** Called with the id of a space that the chat creates or moves to. */
  readonly onSpaceChange?: (spaceId: string | undefined) => void;
  /** Client tools by name. A new object in each render is fine. */
  readonly tools?: Tools;
  /** What happens to calls that are executing when the provider unmounts. */
  readonly onUnmount?: OnUnmount;
  /** Components that show a tool's calls instead of the default card. */
  readonly components?: ToolComponents;
  readonly children?: ReactNode;
}

const NO_TOOLS: Tools = {};
const NO_COMPONENTS: ToolComponents = {};

/** Provides one chat to everything below it, and executes its client tools. */
export function ToolgateChatProvider(props: ToolgateChatProviderProps): ReactNode {
  const { agent, defaultSpaceId, onSpaceChange, components = NO_COMPONENTS } = props;
  const client = useClient(props);
  const chat = useChatStore(
    client,
    { agent, spaceId: defaultSpaceId, onSpaceChange },
    props.tools ?? NO_TOOLS,
  );
  const value = useMemo(() => ({ client, chat, components }), [client, chat, components]);
  return (
    <ToolgateContext.Provider value={value}>
      <ClientTools tools={props.tools ?? NO_TOOLS} onUnmount={props.onUnmount} chat={chat} />
      {props.children}
    </ToolgateContext.Provider>
  );
}

function ClientTools({ chat, ...rest }: { chat: ChatStore; tools: Tools; onUnmount: OnUnmount | undefined }) {
  const spaceId = useSyncExternalStore(
    chat.subscribe,
    () => chat.snapshot().spaceId,
    () => chat.serverSnapshot().spaceId,
  );
  useAutoToolHandler({ spaceId, ...rest });
  return null;
}

/** The same client for as long as the URL and the keys are the same; a new JWT needs no new client. */
function useClient(props: ToolgateChatProviderProps): ToolgateClient {
  const { client: given, publicKey, secretKey } = props;
  const url = props.url ?? props.gatewayUrl;
  const token = props.token ?? props.jwt;
  const latest = useRef(token);
  useEffect(() => {
    latest.current = token;
  }, [token]);
  const hasToken = token !== undefined;
  return useMemo(() => {
    if (given) return given;
    const current = async () => {
      const value = latest.current;
      return (typeof value === 'function' ? await value() : value) ?? '';
    };
    return new ToolgateClient({
      url: url ?? globalThis.location?.origin ?? 'http://127.0.0.1:8787',
      ...(secretKey && { key: secretKey }),
      ...(publicKey && { publicKey }),
      ...(hasToken && { token: current }),
    });
  }, [given, url, publicKey, secretKey, hasToken]);
}

function useChatStore(client: ToolgateClient, options: ChatOptions, tools: Tools): ChatStore {
  const { agent, spaceId, onSpaceChange } = options;
  const initial = useRef(options);
  const chat = useMemo(() => new ChatStore(client, initial.current), [client]);
  useEffect(() => {
    chat.options = { agent, spaceId, onSpaceChange };
    chat.tools = tools;
  }, [chat, agent, spaceId, onSpaceChange, tools]);
  useEffect(() => {
    if (spaceId !== undefined) chat.open(spaceId);
  }, [chat, spaceId]);
  return chat;
}
