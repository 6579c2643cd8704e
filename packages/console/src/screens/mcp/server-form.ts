type Config = Record<string, unknown>;

/** What the form of a server holds; lists and pairs are lines of text. */
export interface ServerForm {
  readonly kind: 'url' | 'command';
  readonly url: string;
  readonly headers: string;
  readonly command: string;
  readonly args: string;
  readonly env: string;
  readonly review: string;
  readonly approve: string;
}

/** The form for a configuration. */
export function formOf(config: Config): ServerForm {
  return {
    kind: config.command === undefined ? 'url' : 'command',
    url: text(config.url),
    headers: linesOf(config.headers),
    command: text(config.command),
    args: Array.isArray(config.args) ? config.args.join('\n') : '',
    env: linesOf(config.env),
    review: text(config.review) || 'flagged',
    approve: text(config.approve) || 'none',
  };
}

/** The configuration that a form stands for. Members that the form does not know stay as they are. */
export function configOf(form: ServerForm, before: Config = {}): Config {
  const { url, headers, command, args, env, review, approve, ...rest } = before;
  const place =
    form.kind === 'url'
      ? { url: form.url.trim(), ...named('headers', pairsOf(form.headers)) }
      : {
          command: form.command.trim(),
          ...named(
            'args',
            form.args.split('\n').filter((line) => line !== ''),
          ),
          ...named('env', pairsOf(form.env)),
        };
  return {
    ...(form.kind === 'url' ? without(rest, ['cwd', 'limits']) : without(rest, ['auth'])),
    ...place,
    ...(form.review !== 'flagged' && { review: form.review }),
    ...(form.approve !== 'none' && { approve: form.approve }),
  };
}

function named(name: string, value: object): Config {
  return Object.keys(value).length === 0 ? {} : { [name]: value };
}

function without(config: Config, names: readonly string[]): Config {
  return Object.fromEntries(Object.entries(config).filter(([name]) => !names.includes(name)));
}

function linesOf(pairs: unknown): string {
  if (typeof pairs !== 'object' || pairs === null) return '';
  return Object.entries(pairs)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

function pairsOf(lines: string): Record<string, string> {
  return Object.fromEntries(
    lines.split('\n').flatMap((line) => {
      const at = line.indexOf(':');
      return at < 1 ? [] : [[line.slice(0, at).trim(), line.slice(at + 1).trim()]];
    }),
  );
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
