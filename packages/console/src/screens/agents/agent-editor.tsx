import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ToolgateError, type wire } from '@toolgate/client';
import { Save, Undo2 } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { CodeEditor, type TextProblem } from '../../ui/editor/lazy.tsx';
import { Segments } from '../../ui/segments.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { type Format, readAgent, writeAgent } from './agent-document.ts';
import styles from './agents.module.css';
import { ProblemList } from './problem-list.tsx';

/** What the gateway said to a text: it counts until the text changes. */
interface Verdict {
  readonly text: string;
  readonly faults: readonly wire.Fault[];
  readonly severity: 'error' | 'warning';
}

const FORMATS = [
  { id: 'json', label: 'JSON' },
  { id: 'markdown', label: 'Markdown' },
] as const;

/** Edits an agent's configuration. Mistakes that the gateway finds stand at their lines. */
export function AgentEditor({ agent }: { readonly agent: wire.Agent }) {
  const client = useClient();
  const queries = useQueryClient();
  const { name, config, revision } = agent;
  const [format, setFormat] = useState<Format>('json');
  const [base, setBase] = useState(agent);
  const [text, setText] = useState(() => writeAgent(config, format));
  const [verdict, setVerdict] = useState<Verdict>();
  const [reveal, setReveal] = useState<{ at: number }>();
  const original = useMemo(() => writeAgent(base.config, format), [base, format]);
  const reading = useMemo(() => readAgent(text, format, name), [text, format, name]);
  const isChanged = text !== original;
  useEffect(() => {
    // A revision from elsewhere replaces the text, unless somebody has begun to change it.
    if (revision === base.revision || isChanged) return;
    setBase(agent);
    setText(writeAgent(config, format));
  }, [agent, revision, base, isChanged, config, format]);
  const problems = useMemo(() => problemsOf(reading, verdict, text), [reading, verdict, text]);
  const saving = useMutation({
    mutationFn: () => {
      if (!('config' in reading)) throw new Error(reading.mistake.message);
      return client.agents.put(name, reading.config);
    },
    onSuccess: async (saved) => {
      setBase(saved);
      setVerdict({ text, faults: saved.warnings ?? [], severity: 'warning' });
      queries.setQueryData(['agent', name], saved);
      toast(saved.revision === base.revision ? 'Nothing has changed' : `Saved as revision ${saved.revision}`);
      await queries.invalidateQueries({ queryKey: ['agents'] });
      await queries.invalidateQueries({ queryKey: ['tools'] });
      await queries.invalidateQueries({ queryKey: ['revisions', name] });
    },
    onError: (error) => {
      if (error instanceof ToolgateError && error.errors.length > 0)
        setVerdict({ text, faults: error.errors, severity: 'error' });
      else toastError(error);
    },
  });
  const canSave = isChanged && 'config' in reading && !saving.isPending;
  const choose = (next: Format): void => {
    if (!('config' in reading)) return;
    setFormat(next);
    setText(writeAgent(isChanged ? reading.config : base.config, next));
    setVerdict(undefined);
  };
  return (
    <section className={styles.editor} aria-label="Configuration">
      <div className={styles.bar}>
        <Segments
          label="Format"
          options={FORMATS}
          chosen={format}
          onChoose={choose}
          disabled={!('config' in reading)}
        />
        <span className={styles.state}>
          {isChanged ? 'Not saved' : revision !== base.revision ? '' : 'Saved'}
          {isChanged && revision !== base.revision && `, and revision ${revision} was saved by somebody else`}
        </span>
        {isChanged && (
          <Button size="small" variant="ghost" icon={<Undo2 />} onClick={() => setText(original)}>
            Discard
          </Button>
        )}
        <Button
          size="small"
          variant="primary"
          icon={<Save />}
          busy={saving.isPending}
          disabled={!canSave}
          title="Ctrl+S"
          onClick={() => saving.mutate()}
        >
          Save
        </Button>
      </div>
      <div className={styles.text}>
        <CodeEditor
          label={`Configuration of ${name}`}
          language={format}
          value={text}
          onChange={setText}
          problems={problems}
          reveal={reveal}
          onSave={() => canSave && saving.mutate()}
        />
      </div>
      <ProblemList text={text} problems={problems} onChoose={({ from }) => setReveal({ at: from })} />
    </section>
  );
}

/** The mistake that keeps the text from being read, or what the gateway said to exactly this text. */
function problemsOf(
  reading: ReturnType<typeof readAgent>,
  verdict: Verdict | undefined,
  text: string,
): TextProblem[] {
  if (!('config' in reading)) return [{ ...reading.mistake, severity: 'error' }];
  if (verdict?.text !== text) return [];
  return verdict.faults.map(({ pointer, message }) => ({
    ...(reading.locate(pointer) ?? { from: 0, to: 0 }),
    severity: verdict.severity,
    message: pointer === '' ? message : `${pointer}: ${message}`,
  }));
}
