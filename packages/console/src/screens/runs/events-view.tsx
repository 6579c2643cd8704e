import { useVirtualizer } from '@tanstack/react-virtual';
import type { wire } from '@toolgate/client';
import { useDeferredValue, useMemo, useRef, useState } from 'react';
import { CopyButton } from '../../ui/copy-button.tsx';
import { SearchInput, Select } from '../../ui/field.tsx';
import { formatClock } from '../../ui/format.ts';
import { JsonView } from '../../ui/json-view.tsx';
import styles from './events-view.module.css';

const ROW_PX = 32;

export interface EventsViewProps {
  readonly events: readonly wire.Event[];
  /** The `seq` of the event whose members are shown. */
  readonly chosen: string | undefined;
  readonly onChoose: (seq: string | undefined) => void;
}

/** A run's stored events as they are, with a search over everything in them. */
export function EventsView({ events, chosen, onChoose }: EventsViewProps) {
  const [text, setText] = useState('');
  const [type, setType] = useState('');
  const wanted = useDeferredValue(text.toLowerCase());
  // Written once per event, so that typing does not serialise thousands of them again.
  const texts = useRef(new WeakMap<wire.Event, string>());
  const found = useMemo(
    () =>
      events.filter((event) => {
        if (type && event.type !== type) return false;
        if (!wanted) return true;
        let written = texts.current.get(event);
        if (written === undefined) {
          written = JSON.stringify(event).toLowerCase();
          texts.current.set(event, written);
        }
        return written.includes(wanted);
      }),
    [events, wanted, type],
  );
  const types = useMemo(() => [...new Set(events.map((event) => event.type))].sort(), [events]);
  const event = events.find(({ seq }) => String(seq) === chosen);
  return (
    <div className={styles.view}>
      <div className={styles.tools}>
        <SearchInput
          className={styles.search}
          label="Search events"
          value={text}
          onChange={(change) => setText(change.target.value)}
        />
        <Select aria-label="Type" value={type} onChange={(change) => setType(change.target.value)}>
          <option value="">All types</option>
          {types.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </Select>
        <span className={styles.count} role="status">
          {found.length.toLocaleString('en')} of {events.length.toLocaleString('en')}
        </span>
        <CopyButton wide label="Copy as JSON" text={() => JSON.stringify(found, null, 2)} />
      </div>
      <Rows events={found} chosen={chosen} onChoose={onChoose} />
      <div className={styles.detail}>
        {event ? (
          <JsonView key={event.seq} value={event} open={5} label="Event" />
        ) : (
          <p className={styles.hint}>Choose an event to see all of it.</p>
        )}
      </div>
    </div>
  );
}

function Rows({ events, chosen, onChoose }: EventsViewProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <section ref={scroll} className={styles.list} aria-label="Events" tabIndex={0}>
      <div className={styles.rows} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start, key }) => {
          const event = events[index];
          if (!event) return null;
          const seq = String(event.seq);
          return (
            <button
              key={key}
              type="button"
              className={styles.row}
              style={{ transform: `translateY(${start}px)` }}
              aria-pressed={seq === chosen}
              onClick={() => onChoose(seq === chosen ? undefined : seq)}
            >
              <span className={styles.time}>{formatClock(event.time)}</span>
              <span className={styles.type}>{event.type}</span>
              <span className={styles.what}>{about(event)}</span>
            </button>
          );
        })}
      </div>
    </section>
  );
}

function about(event: wire.Event): string {
  if ('toolName' in event) return event.toolName;
  if ('step' in event) return `step ${event.step}`;
  if ('status' in event) return event.status;
  return '';
}
