import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Markdown } from './markdown.js';

function check(text: string, html: string): void {
  expect(renderToStaticMarkup(<Markdown text={text} />)).toBe(html);
}

test('paragraphs, and what stands out in them', () => {
  check(
    'One *two*\n\n**three** `four`',
    '<p>One <em>two</em></p><p><strong>three</strong> <code>four</code></p>',
  );
});

test('lists, also with numbers that begin late', () => {
  check('- a\n- b\n  more', '<ul><li>a</li><li>b\nmore</li></ul>');
  check('3. c\n4. d', '<ol start="3"><li>c</li><li>d</li></ol>');
});

test('headings, quotes and code', () => {
  check(
    '## Title\n> said\n```js\na < b\n```',
    '<p class="tg-heading">Title</p><blockquote>said</blockquote><pre><code>a &lt; b</code></pre>',
  );
});

test('code that is still streaming', () => {
  check('```\nhalf', '<pre><code>half</code></pre>');
});

test('names with underscores and lone stars stay as they are', () => {
  check('send_email 2 * 3 * 4', '<p>send_email 2 * 3 * 4</p>');
});

test('links that lead somewhere harmless', () => {
  const attributes = 'target="_blank" rel="noreferrer noopener"';
  check('[a](https://a.example)', `<p><a href="https://a.example" ${attributes}>a</a></p>`);
  check(
    'see https://a.example/b.',
    `<p>see <a href="https://a.example/b" ${attributes}>https://a.example/b</a>.</p>`,
  );
  check('[a](javascript:alert(1))', '<p>a)</p>');
});

test('HTML is text', () => {
  check('<img src=x onerror=alert(1)>', '<p>&lt;img src=x onerror=alert(1)&gt;</p>');
});

test('a bracket that is left open does not take a link along', () => {
  check(
    '[a [b](https://b.example)',
    '<p>[a <a href="https://b.example" target="_blank" rel="noreferrer noopener">b</a></p>',
  );
});

// Work that grows with the square of the length takes minutes here, where the limit of a test is seconds.
const LENGTH = 200_000;
test.each([
  '[',
  '[a](',
  '[a',
  '](',
  '`a',
  '`a`',
  '**a',
  '**a**',
  '_a ',
  '*',
  'http://',
  '> ',
  '- a\n',
  ' ',
  '|',
  '|-',
  '| ',
  'a | b\n',
])('a text of nothing but %j is rendered in time', (piece) => {
  const text = piece.repeat(LENGTH / piece.length);
  expect(renderToStaticMarkup(<Markdown text={`.${text}`} />)).toMatch(/^<p>/);
});

// A bound on each link's target is not enough: so many of them took a hundred times as long as they do now.
test('links that are left open are rendered in linear time', () => {
  const text = '[a]('.repeat(500_000);
  expect(renderToStaticMarkup(<Markdown text={`.${text}`} />)).toBe(`<p>.${text}</p>`);
});

test('tables, with alignment, markup and bars in cells', () => {
  check(
    'Prices:\n| Item | Price |\n|:--|--:|\n| **Tea** | 2 |\n| a \\| b | 3 |\n\nEnd.',
    '<p>Prices:</p><div class="tg-table"><table><thead><tr>' +
      '<th scope="col" style="text-align:left">Item</th><th scope="col" style="text-align:right">Price</th></tr></thead>' +
      '<tbody><tr><td style="text-align:left"><strong>Tea</strong></td><td style="text-align:right">2</td></tr>' +
      '<tr><td style="text-align:left">a | b</td><td style="text-align:right">3</td></tr></tbody></table></div><p>End.</p>',
  );
});

test('a row with too few or too many cells, and a table that is still streaming', () => {
  check(
    'a | b\n--- | ---\n1\n',
    '<div class="tg-table"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>' +
      '<tbody></tbody></table></div><p>1</p>',
  );
  check(
    '| a | b |\n| - | - |\n| 1 |\n| 1 | 2 | 3 |',
    '<div class="tg-table"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>' +
      '<tbody><tr><td>1</td><td></td></tr><tr><td>1</td><td>2</td></tr></tbody></table></div>',
  );
  check('| a | b |', '<p>| a | b |</p>');
  check('this | is no table\n---', '<p>this | is no table\n---</p>');
});
