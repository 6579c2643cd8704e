/** A package with one tool, as the editor makes it. */
export interface DraftPackage extends Record<string, unknown> {
  readonly id: string;
  readonly tools: readonly [{ readonly name: string } & Record<string, unknown>];
}

export interface Draft {
  readonly id: string;
  readonly code: string;
  /** Separated by commas. */
  readonly permissions: string;
  /** An input, whose members are the tool's parameters. */
  readonly example: Record<string, unknown>;
}

/** The package for what somebody wrote. The schema of the input follows from the example, and permits more. */
export function draftPackage({ id, code, permissions, example }: Draft): DraftPackage {
  return {
    id,
    name: id,
    version: '0.0.1',
    tools: [
      {
        name: `${id.replaceAll('-', '_')}_run`,
        description: `Runs the draft of the plugin ${id}.`,
        parameters: { type: 'object', properties: Object.fromEntries(Object.entries(example).map(schemaOf)) },
        executorCode: code,
      },
    ],
    permissions: permissions.split(',').flatMap((one) => one.trim() || []),
  };
}

function schemaOf([name, value]: [string, unknown]): [string, object] {
  if (Array.isArray(value)) return [name, { type: 'array' }];
  if (value === null) return [name, {}];
  return [name, { type: typeof value }];
}
