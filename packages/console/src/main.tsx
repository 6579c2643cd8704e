import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { GatewayProvider, openGateway } from './data/gateway.tsx';
import { createQueryClient } from './data/query-client.ts';
import { App } from './shell/app.tsx';
import './tokens.css';
import './base.css';

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no element with the id "root"');
createRoot(root).render(
  <StrictMode>
    <GatewayProvider gateway={openGateway()}>
      <QueryClientProvider client={createQueryClient()}>
        <App />
      </QueryClientProvider>
    </GatewayProvider>
  </StrictMode>,
);
