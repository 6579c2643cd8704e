import { ToolgateChat, ToolgateChatProvider, type Tools, useToolgateChat } from '@toolgate/react';
import '@toolgate/react/styles.css';
import { AskUser } from './ask-user.js';
import { Chart } from './chart.js';
import { getToken, publicKey } from './session.js';
import './app.css';

// Tools that the page brings along: the agent learns of them with each message.
const tools: Tools = {
  // Runs here as soon as the model calls it; its component draws what it was given.
  showChart: {
    description: 'Shows the user a bar chart.',
    parameters: {
      type: 'object',
      properties: {
        title: { type: 'string' },
        values: { type: 'array', items: { type: 'number' }, minItems: 4 },
        labels: { type: 'array', items: { type: 'string' }, description: 'One for each value.' },
      },
      required: ['title', 'values'],
    },
    execute: ({ values }: { values: number[] }) => ({ shown: values.length }),
  },
  // Has no `execute`: its component gives the result when the user has chosen.
  askUser: {
    description: 'Asks the user to choose.',
    parameters: {
      type: 'object',
      properties: {
        question: { type: 'string' },
        choices: { type: 'array', items: { type: 'string' }, minItems: 2 },
      },
      required: ['question', 'choices'],
    },
  },
};

const components = { showChart: Chart, askUser: AskUser };

const suggestions = [
  'Show chart "Teapots sold per quarter": 12, 19, 31, 24',
  'I want 34.50 back: refund order "A-1042"',
  'Ask user "Which glaze?" "Cobalt" "Celadon"',
];

/** A chat whose space is in the address: a reload, or the same address in another tab, goes on with it. */
export function App() {
  return (
    <ToolgateChatProvider
      publicKey={publicKey}
      token={getToken}
      agent="teapot-desk"
      defaultSpaceId={location.hash.slice(1) || undefined}
      onSpaceChange={(spaceId) => history.replaceState(null, '', `#${spaceId ?? ''}`)}
      tools={tools}
      components={components}
    >
      <Header />
      <ToolgateChat
        label="Teapot desk"
        placeholder="Ask the teapot desk"
        welcome={<h2>What can the teapot desk do for you?</h2>}
        suggestions={suggestions}
      />
    </ToolgateChatProvider>
  );
}

function Header() {
  const { open, messages } = useToolgateChat();
  return (
    <header>
      <h1>Teapot desk</h1>
      <button type="button" disabled={messages.length === 0} onClick={() => open(undefined)}>
        New conversation
      </button>
    </header>
  );
}
