import { ToolgateClient } from '@toolgate/client';
import { createContext, type ReactNode, useContext, useSyncExternalStore } from 'react';
import { pauseInBackground } from './background-streams.ts';
import { ConnectionMonitor, type Reach } from './connection-monitor.ts';

/** The gateway that has served this page, and whether it can be reached. */
export interface Gateway {
  readonly client: ToolgateClient;
  readonly monitor: ConnectionMonitor;
}

/** Opens the page's own gateway. Its session is a cookie, so there is no key to hand over. */
export function openGateway(): Gateway {
  const monitor = new ConnectionMonitor(globalThis.location.origin);
  const fetch = pauseInBackground(monitor.fetch);
  return { client: new ToolgateClient({ url: globalThis.location.origin, fetch }), monitor };
}

const GatewayContext = createContext<Gateway | undefined>(undefined);

export function GatewayProvider({
  gateway,
  children,
}: {
  readonly gateway: Gateway;
  readonly children: ReactNode;
}) {
  return <GatewayContext.Provider value={gateway}>{children}</GatewayContext.Provider>;
}

export function useGateway(): Gateway {
  const gateway = useContext(GatewayContext);
  if (!gateway) throw new Error('useGateway needs a <GatewayProvider> above it');
  return gateway;
}

/** The client of the page's gateway. */
export function useClient(): ToolgateClient {
  return useGateway().client;
}

/** Whether the page's gateway can be reached. */
export function useReach(): Reach {
  const { monitor } = useGateway();
  return useSyncExternalStore(monitor.subscribe, monitor.reach, monitor.reach);
}
