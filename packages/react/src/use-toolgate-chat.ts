import { useMemo, useSyncExternalStore } from 'react';
import type { ChatSnapshot, ChatStore } from './chat-store.js';
import { useToolgateContext } from './context.js';

/** The provider's chat: its state and its actions. */
export interface ToolgateChatView
  extends ChatSnapshot,
    Pick<ChatStore, 'send' | 'resend' | 'stop' | 'open' | 'decide' | 'reconnect'> {}

/** Follows the provider's chat. */
export function useToolgateChat(): ToolgateChatView {
  const { chat } = useToolgateContext('useToolgateChat');
  const snapshot = useSyncExternalStore(chat.subscribe, chat.snapshot, chat.serverSnapshot);
  return useMemo(() => {
    const { send, resend, stop, open, decide, reconnect } = chat;
    return { ...snapshot, send, resend, stop, open, decide, reconnect };
  }, [chat, snapshot]);
}
