import { useEffect, useRef } from 'react';
import { useToolgateContext } from './context.js';
import { spaceStore } from './space-store.js';
import { handlerOf, type Tools } from './tool.js';
import type { OnUnmount, ToolOffer } from './tool-executor.js';

export interface AutoToolHandlerOptions {
  /** The space whose calls to execute; without one, nothing happens. */
  readonly spaceId: string | undefined;
  /** Handlers by tool name. A new object in each render is fine. */
  readonly tools: Tools;
  /**
   * What happens to calls that are executing when the component unmounts: `release` (the default) aborts the
   * handler's signal and releases the call, to another tab or to this component when it mounts again;
   * `finish` lets the handler finish and submits its result.
   */
  readonly onUnmount?: OnUnmount;
}

/**
 * Executes a space's client tools as the model calls them. Each call is claimed first: two tabs, or two
 * components, do not both execute it. A call that was executing when the page was reloaded is claimed again.
 */
export function useAutoToolHandler({ spaceId, tools, onUnmount = 'release' }: AutoToolHandlerOptions): void {
  const { client } = useToolgateContext('useAutoToolHandler');
  // A timeout that is none is an error here, where the tools are given, not at their first call.
  for (const name of Object.keys(tools)) handlerOf(tools, name);
  const offer = useRef<ToolOffer>(undefined);
  const source = useRef({ tools, onUnmount });
  useEffect(() => {
    source.current = { tools, onUnmount };
    offer.current?.replace(source.current);
  }, [tools, onUnmount]);
  useEffect(() => {
    if (!spaceId) return;
    const open = spaceStore(client, spaceId).executor.offer(source.current);
    offer.current = open;
    return () => {
      offer.current = undefined;
      open.close();
    };
  }, [client, spaceId]);
}
