import { useEffect, useState } from 'react';
import { useAgents } from '../../data/queries.ts';
import { Checkbox, Input, SearchInput, Select } from '../../ui/field.tsx';
import { STATUSES, statusWords } from '../../ui/status.tsx';
import styles from './runs.module.css';
import type { RunFilter } from './use-runs.ts';

const TYPING_MS = 250;
const RANGES = [
  [0, 'Any time'],
  [1, 'Last hour'],
  [24, 'Last 24 hours'],
  [168, 'Last 7 days'],
] as const;

export interface RunFiltersProps {
  readonly filter: RunFilter;
  readonly onChange: (change: Partial<RunFilter>) => void;
  /** Only the search and the status, where there is little room. */
  readonly compact: boolean;
}

export function RunFilters({ filter, onChange, compact }: RunFiltersProps) {
  const agents = useAgents().data ?? [];
  return (
    <search className={styles.filters} data-compact={compact}>
      <Typed
        value={filter.text}
        onChange={(text) => onChange({ text })}
        render={(value, set) => (
          <SearchInput
            className={styles.text}
            label="Search first messages"
            value={value}
            onChange={(event) => set(event.target.value)}
          />
        )}
      />
      <Select
        aria-label="Status"
        value={filter.status}
        onChange={(event) => onChange({ status: event.target.value })}
      >
        <option value="">Any status</option>
        <option value="open">Not ended</option>
        {STATUSES.map((status) => (
          <option key={status} value={status}>
            {statusWords(status)}
          </option>
        ))}
      </Select>
      {!compact && (
        <>
          <Select
            aria-label="Agent"
            value={filter.agent}
            onChange={(event) => onChange({ agent: event.target.value })}
          >
            <option value="">Any agent</option>
            {agents.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </Select>
          <Typed
            value={filter.user}
            onChange={(user) => onChange({ user })}
            render={(value, set) => (
              <Input
                className={styles.userFilter}
                aria-label="User"
                placeholder="User"
                value={value}
                onChange={(event) => set(event.target.value)}
              />
            )}
          />
          <Select
            aria-label="Time"
            value={filter.hours}
            onChange={(event) => onChange({ hours: Number(event.target.value) })}
          >
            {RANGES.map(([hours, words]) => (
              <option key={hours} value={hours}>
                {words}
              </option>
            ))}
          </Select>
          <Checkbox
            label="Child runs"
            checked={filter.children}
            onChange={(event) => onChange({ children: event.target.checked })}
          />
        </>
      )}
    </search>
  );
}

interface TypedProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly render: (value: string, set: (value: string) => void) => React.ReactNode;
}

/** A control whose value is passed on when the typing pauses. */
function Typed({ value, onChange, render }: TypedProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return render(text, setText);
}
