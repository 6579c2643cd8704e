import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { CreatedProject, CreateProject, Project, ProjectList } from './wire.js';

/** The projects of the gateway; needs the operator's key. */
export class Projects {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(options: CallOptions = {}): Promise<Project[]> {
    return (await this.#connection.json<ProjectList>('/v1/projects', options)).projects;
  }

  /** Creates a project. Only this response contains its secret key. */
  create(project: CreateProject, options: CallOptions = {}): Promise<CreatedProject> {
    return this.#connection.json('/v1/projects', { ...options, method: 'POST', body: project });
  }

  /** Removes a project with everything in it. */
  remove(project: string, options: CallOptions = {}): Promise<void> {
    const path = `/v1/projects/${encodeURIComponent(project)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE', safe: true });
  }
}
