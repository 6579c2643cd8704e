import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { Budget, BudgetList, UsageReport, UsageRow } from './wire.js';

/** Which usage to report. Days are UTC and written as `2026-11-18`. */
export interface UsageQuery {
  /** The first day; the first of the month by default. */
  from?: string;
  /** The last day, which is included; today by default. */
  to?: string;
  /** What the rows are of; `day` by default. */
  by?: 'day' | 'agent' | 'user' | 'model';
  /** `nextCursor` of the page before. */
  after?: string;
  /** Most rows of a page. */
  limit?: number;
}

/** Runs, tokens and cost of a project, and its budgets. */
export class ProjectUsage {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** A page of what the project has consumed; needs a secret key or a session. */
  get(query: UsageQuery = {}, options: CallOptions = {}): Promise<UsageReport> {
    return this.#connection.json('/v1/usage', { ...options, query: { ...query } });
  }

  /** Every row of what the project has consumed, page by page. */
  async *rows(query: UsageQuery = {}, options: CallOptions = {}): AsyncGenerator<UsageRow> {
    let after = query.after;
    do {
      const page = await this.get({ ...query, ...(after === undefined ? {} : { after }) }, options);
      yield* page.rows;
      after = page.nextCursor ?? undefined;
    } while (after !== undefined);
  }

  /** A page of what another project has consumed; needs the operator's key. */
  ofProject(project: string, query: UsageQuery = {}, options: CallOptions = {}): Promise<UsageReport> {
    const path = `/v1/projects/${encodeURIComponent(project)}/usage`;
    return this.#connection.json(path, { ...options, query: { ...query } });
  }

  /** How far budgets are used up: a user's own, or with a secret key those of the project and of whom it names. */
  async budgets(of: { user?: string; agent?: string } = {}, options: CallOptions = {}): Promise<Budget[]> {
    const list = await this.#connection.json<BudgetList>('/v1/budgets', { ...options, query: { ...of } });
    return list.budgets;
  }
}
