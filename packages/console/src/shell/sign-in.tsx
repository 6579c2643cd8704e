import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { describeError } from '../data/describe-error.ts';
import { useClient } from '../data/gateway.tsx';
import { SESSION_KEY } from '../data/query-client.ts';
import { codeIn, LoginLinkError } from '../data/session.tsx';
import { Button } from '../ui/button.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Field, Input } from '../ui/field.tsx';
import { Logo } from './logo.tsx';
import styles from './sign-in.module.css';

/** The page of whoever has no session. It shows nothing of the project. */
export function SignIn({ error: first }: { readonly error: unknown }) {
  const client = useClient();
  const queries = useQueryClient();
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [own, setOwn] = useState<unknown>();
  // Who has only not signed in yet is told nothing; who has tried with a link is.
  const error = own ?? (first instanceof LoginLinkError ? first : undefined);
  const signIn = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      queries.setQueryData(SESSION_KEY, await client.sessions.signIn(codeIn(text) ?? text.trim()));
    } catch (reason) {
      setOwn(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className={styles.page}>
      <div className={styles.box}>
        <Logo />
        <h1>Sign in to Toolgate</h1>
        <p className={styles.lead}>
          Open the login link that the gateway printed when it started, or make a new one where it runs. A
          link counts once.
        </p>
        <div className={styles.command}>
          <code>toolgate login</code>
          <CopyButton text="toolgate login" label="Copy the command" />
        </div>
        <form className={styles.form} onSubmit={signIn}>
          <Field
            label="Login link or code"
            hint="Pasting works too, for example from another machine."
            error={error === undefined ? undefined : describeError(error).detail}
          >
            <Input
              mono
              autoFocus
              autoComplete="off"
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </Field>
          <Button type="submit" variant="primary" busy={busy} disabled={text.trim() === ''}>
            Sign in
          </Button>
        </form>
      </div>
    </main>
  );
}
