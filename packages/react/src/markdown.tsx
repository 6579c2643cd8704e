import { Fragment, memo, type ReactNode } from 'react';

/**
 * Renders the Markdown that models write: paragraphs, headings, lists, quotes, code, links, tables. Incomplete text,
 * as it is while it streams, renders too. HTML is not passed through.
 */
export const Markdown: (props: { text: string }) => ReactNode = memo(({ text }: { text: string }) =>
  blocksOf(text).map((block, index) => <Block key={index} block={block} />),
);

type Block =
  | { type: 'code'; text: string }
  | { type: 'heading' | 'paragraph' | 'quote'; text: string }
  | { type: 'list'; isOrdered: boolean; start: number; items: string[] }
  | { type: 'table'; head: string[]; aligned: Alignment[]; rows: string[][] };

type Alignment = 'left' | 'center' | 'right' | undefined;

const FENCE = /^\s*(```|~~~)/;
const HEADING = /^#{1,6}\s+/;
const QUOTE = /^>\s?/;
const BULLET = /^\s*[-*+]\s+/;
const NUMBER = /^\s*(\d{1,9})[.)]\s+/;
/** The line under a table's head: `| --- | :-: |`. */
const RULE = /^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$/;

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? '';
    const start = at;
    const while_ = (belongs: (line: string) => boolean): string[] => {
      while (at < lines.length && belongs(lines[at] ?? '')) at++;
      return lines.slice(start, at);
    };
    if (FENCE.test(line)) {
      at++;
      const inside = while_((next) => !FENCE.test(next)).slice(1);
      at++;
      blocks.push({ type: 'code', text: inside.join('\n') });
    } else if (HEADING.test(line)) {
      at++;
      blocks.push({ type: 'heading', text: line.replace(HEADING, '') });
    } else if (QUOTE.test(line)) {
      const quoted = while_((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, ''));
      blocks.push({ type: 'quote', text: quoted.join('\n') });
    } else if (BULLET.test(line) || NUMBER.test(line)) {
      const mark = BULLET.test(line) ? BULLET : NUMBER;
      const items = while_((next) => mark.test(next) || /^\s{2,}\S/.test(next));
      blocks.push({
        type: 'list',
        isOrdered: mark === NUMBER,
        start: Number(NUMBER.exec(line)?.[1] ?? 1),
        items: joinItems(items, mark),
      });
    } else if (isTable(line, lines[at + 1])) {
      const [head = '', rule = '', ...rows] = while_((next) => next.includes('|'));
      blocks.push(tableOf(head, rule, rows));
    } else if (line.trim() === '') {
      at++;
    } else {
      const words = while_(
        (next) => next.trim() !== '' && !startsBlock(next) && !(at > start && isTable(next, lines[at + 1])),
      );
      blocks.push({ type: 'paragraph', text: words.join('\n') });
    }
  }
  return blocks;
}

function startsBlock(line: string): boolean {
  return [FENCE, HEADING, QUOTE, BULLET, NUMBER].some((mark) => mark.test(line));
}

/** Whether a line is the head of a table: the line under it draws as many columns. */
function isTable(line: string, next = ''): boolean {
  if (!line.includes('|') || !next.includes('|') || !RULE.test(next.trim())) return false;
  return cellsOf(line).length === cellsOf(next).length;
}

/** Rows have as many cells as the head: further ones are left out, missing ones are empty. */
function tableOf(head: string, rule: string, rows: string[]): Block {
  const columns = cellsOf(head);
  const aligned = cellsOf(rule).map((cell): Alignment => {
    if (!cell.endsWith(':')) return cell.startsWith(':') ? 'left' : undefined;
    return cell.startsWith(':') ? 'center' : 'right';
  });
  const fitted = rows.map((row) => {
    const cells = cellsOf(row);
    return columns.map((_, index) => cells[index] ?? '');
  });
  return { type: 'table', head: columns, aligned, rows: fitted };
}

/** The cells of a line; `\\|` is a bar inside a cell. */
function cellsOf(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** Joins a line without a list marker to the item before it. */
function joinItems(lines: string[], mark: RegExp): string[] {
  return lines.reduce<string[]>((items, line) => {
    if (mark.test(line)) items.push(line.replace(mark, ''));
    else items.push(`${items.pop() ?? ''}\n${line.trim()}`);
    return items;
  }, []);
}

function Block({ block }: { block: Block }) {
  switch (block.type) {
    case 'code':
      return (
        <pre>
          <code>{block.text}</code>
        </pre>
      );
    case 'heading':
      return (
        <p className="tg-heading">
          <Inline text={block.text} />
        </p>
      );
    case 'quote':
      return (
        <blockquote>
          <Inline text={block.text} />
        </blockquote>
      );
    case 'paragraph':
      return (
        <p>
          <Inline text={block.text} />
        </p>
      );
    case 'table':
      return <Table {...block} />;
    case 'list': {
      const items = block.items.map((item, index) => (
        <li key={index}>
          <Inline text={item} />
        </li>
      ));
      return block.isOrdered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
  }
}

/** In a box of its own, which scrolls when the table is wider than the message. */
function Table({ head, aligned, rows }: Extract<Block, { type: 'table' }>) {
  const style = (column: number) => (aligned[column] ? { textAlign: aligned[column] } : undefined);
  return (
    <div className="tg-table">
      <table>
        <thead>
          <tr>
            {head.map((cell, column) => (
              <th key={column} scope="col" style={style(column)}>
                <Inline text={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} style={style(column)}>
                  <Inline text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// In this order: code, bold, emphasis, named links, bare URLs. No part can cross the start of another of its
// kind, so that text full of unclosed markers takes linear time.
const INLINE =
  /`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_](?![\w*])|\[([^[\]]+)\]\(([^\s[)]{1,2000})\)|(https?:\/\/[^\s<>)]*[^\s<>).,;:!?])/g;

function Inline({ text }: { text: string }): ReactNode {
  const pieces: ReactNode[] = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    pieces.push(text.slice(end, found.index), <Fragment key={found.index}>{marked(found)}</Fragment>);
    end = found.index + found[0].length;
  }
  pieces.push(text.slice(end));
  return pieces;
}

/** The element for one match of `INLINE`. */
function marked([, code, bold, emphasis, name, target, address]: RegExpExecArray): ReactNode {
  if (code !== undefined) return <code>{code}</code>;
  if (bold !== undefined)
    return (
      <strong>
        <Inline text={bold} />
      </strong>
    );
  if (emphasis !== undefined)
    return (
      <em>
        <Inline text={emphasis} />
      </em>
    );
  if (name !== undefined && target !== undefined) return <Link name={name} target={target} />;
  return <Link name={address ?? ''} target={address ?? ''} />;
}

/** Renders a link only for URL schemes that cannot run code. */
function Link({ name, target }: { name: string; target: string }) {
  if (!/^(https?:|mailto:)/i.test(target)) return name;
  return (
    <a href={target} target="_blank" rel="noreferrer noopener">
      {name}
    </a>
  );
}
