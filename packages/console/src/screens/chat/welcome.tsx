import type { wire } from '@toolgate/client';
import { useToolgateChat } from '@toolgate/react';
import { Sparkles, Zap } from 'lucide-react';
import { useMemo } from 'react';
import { useAgents } from '../../data/queries.ts';
import { showControls, showControlsIn } from '../../ui/visible-text.ts';
import styles from './welcome.module.css';

interface Suggestion {
  readonly title: string;
  readonly message: string;
}

const SUGGESTIONS_MAX = 6;

/** Messages that show what an agent's tools do, for agents that suggest none themselves. */
const BY_TOOL: Readonly<Record<string, Suggestion>> = {
  lookup_order: { title: 'A server tool', message: 'Use lookup_order for my order "A-1042".' },
  pick_color: { title: 'A tool in this page', message: 'Use pick_color with "teal".' },
  ask_user: { title: 'A tool that asks you', message: 'Use ask_user "Which glaze do you like?"' },
  send_email: {
    title: 'A tool that needs your approval',
    message:
      'Use send_email to "ada@example.com" with the subject "Your teapot" and the body "It is on its way."',
  },
};

const PAGE_TOOL: Suggestion = { title: 'A tool that runs in this page', message: 'Use get_page_time.' };

/** What an empty conversation says: what the agent is, and messages to begin with. */
export function Welcome({ agent }: { readonly agent: string | undefined }) {
  const { send } = useToolgateChat();
  const config = useAgents().data?.find(({ name }) => name === agent)?.config;
  const suggestions = useMemo(() => suggestionsOf(config), [config]);
  return (
    <div className={styles.welcome}>
      <div>
        <h2>{agent ? `Talk to ${agent}` : 'Talk to an agent'}</h2>
        <p>
          {showControlsIn(descriptionOf(config)) ??
            'Each tool call is shown as it happens: what was asked, where it runs, what came back.'}
        </p>
      </div>
      <div className={styles.suggestions}>
        {suggestions.map(({ title, message }) => (
          <button
            key={message}
            type="button"
            className={styles.suggestion}
            onClick={() => void send(message).catch(() => {})}
          >
            <b>
              <Sparkles aria-hidden="true" />
              {showControls(title)}
            </b>
            <span>{showControls(message)}</span>
          </button>
        ))}
      </div>
      <p className={styles.tip}>
        <Zap aria-hidden="true" />
        <span>
          Then try to break it: while a call waits for you, end the gateway with <code>kill -9</code> and
          start it again. The run goes on where it was, and so does this page.
        </span>
      </p>
    </div>
  );
}

function descriptionOf(config: wire.Agent['config'] | undefined): string | undefined {
  const inner = config?.agent as { description?: unknown } | undefined;
  const found = config?.description ?? inner?.description;
  return typeof found === 'string' ? found : undefined;
}

function suggestionsOf(config: wire.Agent['config'] | undefined): Suggestion[] {
  const own = (config?.metadata as { suggestions?: unknown } | undefined)?.suggestions;
  if (Array.isArray(own) && own.length > 0) return own.filter(isSuggestion).slice(0, SUGGESTIONS_MAX);
  const tools = Array.isArray(config?.tools) ? (config.tools as Array<{ name?: unknown }>) : [];
  const known = tools.flatMap(({ name }) =>
    typeof name === 'string' && BY_TOOL[name] ? [BY_TOOL[name]] : [],
  );
  return [...known, PAGE_TOOL].slice(0, SUGGESTIONS_MAX);
}

function isSuggestion(value: unknown): value is Suggestion {
  const { title, message } = (value ?? {}) as Partial<Suggestion>;
  return typeof title === 'string' && typeof message === 'string';
}
