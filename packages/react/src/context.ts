import type { ToolgateClient } from '@toolgate/client';
import { type Context, createContext, useContext } from 'react';
import type { ChatStore } from './chat-store.js';
import type { ToolComponents } from './tool-component.js';

/** The value that `ToolgateChatProvider` provides. */
export interface ToolgateContextValue {
  readonly client: ToolgateClient;
  readonly chat: ChatStore;
  readonly components: ToolComponents;
}

export const ToolgateContext: Context<ToolgateContextValue | undefined> = createContext<
  ToolgateContextValue | undefined
>(undefined);

export function useToolgateContext(hook: string): ToolgateContextValue {
  const value = useContext(ToolgateContext);
  if (!value) throw new Error(`${hook} needs a <ToolgateChatProvider> above it`);
  return value;
}

/** The provider's client, for everything that has no hook of its own. */
export function useToolgateClient(): ToolgateClient {
  return useToolgateContext('useToolgateClient').client;
}
