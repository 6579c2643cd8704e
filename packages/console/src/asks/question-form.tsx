import { useQueryClient } from '@tanstack/react-query';
import { ExternalLink, Send, X } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { describeError } from '../data/describe-error.ts';
import { useClient } from '../data/gateway.tsx';
import { Button } from '../ui/button.tsx';
import { safeLink } from '../ui/safe-link.ts';
import { initialValue, type Schema } from '../ui/schema-form/schema.ts';
import { Loading } from '../ui/states.tsx';
import { showControls } from '../ui/visible-text.ts';
import styles from './asks.module.css';
import { Deadline } from './deadline.tsx';

const SchemaForm = lazy(() =>
  import('../ui/schema-form/schema-form.tsx').then(({ SchemaForm: form }) => ({ default: form })),
);

/** What a tool asks in the middle of a call. */
export interface QuestionSubject {
  readonly questionId: string;
  readonly message: string;
  readonly schema?: unknown;
  readonly url?: string | null | undefined;
  readonly expiresAt: string;
}

/** Lets a person answer a question of a tool, with a form made from its schema, or decline. */
export function QuestionForm({ question }: { readonly question: QuestionSubject }) {
  const client = useClient();
  const queries = useQueryClient();
  const schema = (question.schema ?? undefined) as Schema | undefined;
  const [content, setContent] = useState(() => schema && initialValue(schema, schema));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const answer = async (action: 'accept' | 'decline'): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await client.questions.answer(
        question.questionId,
        action === 'accept' && schema ? { action, content } : { action },
      );
      await queries.invalidateQueries({ queryKey: ['inbox'] });
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  const url = question.url ? safeLink(question.url) : undefined;
  return (
    <div className={styles.ask}>
      <p>{showControls(question.message)}</p>
      {schema && (
        <Suspense fallback={<Loading rows={3} />}>
          <SchemaForm schema={schema} value={content} onChange={setContent} label="Answer" />
        </Suspense>
      )}
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {describeError(error).detail}
        </p>
      )}
      <div className={styles.actions}>
        {url && (
          <Button
            icon={<ExternalLink />}
            onClick={() => globalThis.open(url, '_blank', 'noopener,noreferrer')}
          >
            Open {new URL(url).host}
          </Button>
        )}
        <Button variant="primary" busy={busy} icon={<Send />} onClick={() => void answer('accept')}>
          {url ? 'I have done it' : 'Answer'}
        </Button>
        <Button variant="danger" icon={<X />} onClick={() => void answer('decline')}>
          Decline
        </Button>
        <Deadline time={question.expiresAt} words="cancelled without an answer" />
      </div>
    </div>
  );
}
