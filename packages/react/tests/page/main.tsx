/** A page that a test drives: `?key=…&space=…&onUnmount=…`. Its tool `slow` ends when the test says so. */
import {
  type OnUnmount,
  ToolgateChat,
  ToolgateChatProvider,
  type ToolHandler,
  useAutoToolHandler,
} from '@toolgate/react';
import '@toolgate/react/styles.css';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

declare global {
  interface Window {
    /** Told of each execution. */
    executing?: (callId: string) => void;
    /** Ends the execution under way. */
    finish?: (result: unknown) => void;
  }
}

const query = new URLSearchParams(location.search);
const space = query.get('space') ?? undefined;

const slow: ToolHandler = (_input, { toolCallId }) => {
  window.executing?.(toolCallId);
  return new Promise((resolve) => {
    window.finish = resolve;
  });
};

function Slow() {
  useAutoToolHandler({
    spaceId: space,
    tools: { slow },
    onUnmount: (query.get('onUnmount') ?? undefined) as OnUnmount | undefined,
  });
  return <p>slow is offered</p>;
}

function Page() {
  const [isOffered, setOffered] = useState(true);
  return (
    <ToolgateChatProvider secretKey={query.get('key') ?? ''} defaultSpaceId={space}>
      <button type="button" onClick={() => setOffered(!isOffered)}>
        Toggle
      </button>
      {isOffered && <Slow />}
      <ToolgateChat />
    </ToolgateChatProvider>
  );
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
