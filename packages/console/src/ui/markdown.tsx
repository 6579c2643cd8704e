import type { AlignType, Nodes, Parents, Root, TableRow } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { Component, memo, type ReactNode, useDeferredValue, useMemo } from 'react';
import { CodeBlock } from './code-block.tsx';
import styles from './markdown.module.css';
import { safeLink } from './safe-link.ts';
import { showControls } from './visible-text.ts';

/** A longer text is shown as it is. */
const LENGTH_MAX = 200_000;
/** Deeper nesting is shown as text: it is no document that a person wrote. */
const DEPTH_MAX = 24;

export interface MarkdownProps {
  readonly text: string;
}

/**
 * Shows Markdown of a model or a tool. It is never turned into HTML: the syntax tree becomes React elements of a
 * fixed list, markup in it is shown as text, and links lead to web and mail addresses only.
 */
export const Markdown = memo(function Markdown({ text }: MarkdownProps) {
  // While a text streams in, drawing the newest part may lag behind typing and clicks.
  const shown = useDeferredValue(text);
  const tree = useMemo(() => parse(shown), [shown]);
  if (!tree) return <div className={styles.plain}>{showControls(shown)}</div>;
  return (
    <Fallback key={shown.length > LENGTH_MAX ? 'long' : 'short'} text={shown}>
      <div className={styles.markdown}>{children(tree, 0)}</div>
    </Fallback>
  );
});

function parse(text: string): Root | undefined {
  if (text.length > LENGTH_MAX) return undefined;
  try {
    return fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  } catch {
    return undefined;
  }
}

function children(node: Parents, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return textOf(node);
  return node.children.map((child, index) => <Node key={index} node={child} depth={depth + 1} />);
}

function Node({ node, depth }: { readonly node: Nodes; readonly depth: number }): ReactNode {
  switch (node.type) {
    case 'text':
    case 'html':
      return showControls(node.value);
    case 'paragraph':
      return <p>{children(node, depth)}</p>;
    case 'heading':
      return <Heading level={node.depth}>{children(node, depth)}</Heading>;
    case 'emphasis':
      return <em>{children(node, depth)}</em>;
    case 'strong':
      return <strong>{children(node, depth)}</strong>;
    case 'delete':
      return <del>{children(node, depth)}</del>;
    case 'inlineCode':
      return <code>{showControls(node.value)}</code>;
    case 'code':
      return <CodeBlock text={node.value} language={node.lang ?? undefined} />;
    case 'break':
      return <br />;
    case 'thematicBreak':
      return <hr />;
    case 'blockquote':
      return <blockquote>{children(node, depth)}</blockquote>;
    case 'list':
      return node.ordered ? (
        <ol start={node.start ?? 1}>{children(node, depth)}</ol>
      ) : (
        <ul>{children(node, depth)}</ul>
      );
    case 'listItem':
      return (
        <li>
          {typeof node.checked === 'boolean' && (
            <input type="checkbox" checked={node.checked} readOnly disabled aria-label="Done" />
          )}
          {node.children.map((child, index) =>
            child.type === 'paragraph' ? (
              <span key={index}>{children(child, depth)}</span>
            ) : (
              <Node key={index} node={child} depth={depth + 1} />
            ),
          )}
        </li>
      );
    case 'link':
      return <SafeLink href={node.url}>{children(node, depth)}</SafeLink>;
    case 'image':
      return <SafeImage src={node.url} alt={node.alt ?? ''} />;
    case 'table':
      return <Table rows={node.children} align={node.align ?? []} depth={depth} />;
    case 'definition':
    case 'footnoteDefinition':
      return null;
    default:
      return 'children' in node ? children(node as Parents, depth) : null;
  }
}

/** The page's own headings end at the second level, so those of a text begin below. */
function Heading({ level, children: words }: { readonly level: number; readonly children: ReactNode }) {
  return level <= 2 ? <h3>{words}</h3> : <h4>{words}</h4>;
}

interface TableProps {
  readonly rows: readonly TableRow[];
  readonly align: readonly AlignType[];
  readonly depth: number;
}

function Table({ rows: [head, ...rows], align, depth }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
    <section className={styles.table} tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, index) => (
              <th key={index} scope="col" data-align={align[index] ?? undefined}>
                {children(cell, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.children.map((cell, index) => (
                <td key={index} data-align={align[index] ?? undefined}>
                  {children(cell, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function SafeLink({ href, children: words }: { readonly href: string; readonly children: ReactNode }) {
  const safe = safeLink(href);
  if (safe === undefined) return <span title={`Not a link that the console opens: ${href}`}>{words}</span>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
      {words}
    </a>
  );
}

function SafeImage({ src, alt }: { readonly src: string; readonly alt: string }) {
  // Images from elsewhere would tell their host that somebody reads this; they are links instead.
  if (/^\/v1\/file-links\/[\w.-]+$/.test(src) || /^data:image\/(png|jpeg|gif|webp);base64,/.test(src))
    return <img src={src} alt={alt} loading="lazy" />;
  return <SafeLink href={src}>{alt || 'Image'}</SafeLink>;
}

function textOf(node: Nodes): string {
  const found: string[] = [];
  const left: Nodes[] = [node];
  for (let next = left.pop(); next; next = left.pop()) {
    if ('value' in next) found.push(next.value);
    if ('children' in next) left.push(...[...next.children].reverse());
  }
  return showControls(found.join(' '));
}

/** Shows the text as it is if its tree cannot be drawn. */
class Fallback extends Component<{ text: string; children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render(): ReactNode {
    return this.state.failed ? (
      <div className={styles.plain}>{showControls(this.props.text)}</div>
    ) : (
      this.props.children
    );
  }
}
