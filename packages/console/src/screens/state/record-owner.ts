import type { RecordOwner, wire } from '@toolgate/client';

export type RecordKind = 'goals' | 'memories' | 'plans';
export type Scope = 'agent' | 'user' | 'space';

/** Whose records; nothing until somebody is named. */
export function ownerOf(scope: Scope, who: string): RecordOwner | undefined {
  return who === '' ? undefined : { [scope]: who };
}

/** Members that the gateway sets; the others can be changed. */
const SET_BY_GATEWAY = new Set(['id', 'version', 'createdAt', 'updatedAt', 'nextAt']);

/** What of a record a person may change. */
export function changeable(record: wire.AgentRecordBody): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !SET_BY_GATEWAY.has(name)));
}

/** The members that differ; one that is gone is set to null. */
export function changesOf(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(after))
    if (JSON.stringify(value) !== JSON.stringify(before[name])) changes[name] = value;
  for (const name of Object.keys(before)) if (!(name in after)) changes[name] = null;
  return changes;
}

/** A line that tells a record from others: its first text of some length. */
export function titleOf(record: wire.AgentRecordBody): string {
  for (const name of ['title', 'name', 'topic', 'goal', 'description', 'content', 'message', 'text']) {
    const value = record[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  return record.id;
}
