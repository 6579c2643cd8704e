// @vitest-environment happy-dom
import { cleanup, render } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { Markdown } from './markdown.tsx';

afterEach(cleanup);

function shown(text: string): HTMLElement {
  return render(<Markdown text={text} />).container;
}

test('tables, lists and code are drawn', () => {
  const page = shown('|a|b|\n|-|-:|\n|1|2|\n\n- one\n- two\n\n```js\nlet x;\n```');
  expect(page.querySelectorAll('td')).toHaveLength(2);
  expect(page.querySelector('td[data-align="right"]')?.textContent).toBe('2');
  expect(page.querySelectorAll('li')).toHaveLength(2);
  expect(page.querySelector('pre')?.textContent).toBe('let x;');
});

test('markup is shown as text', () => {
  const page = shown('before <b onclick="x()">bold</b> <script>alert(1)</script>');
  expect(page.querySelector('b, script')).toBeNull();
  expect(page.textContent).toContain('<script>');
});

test.each([
  'javascript:alert(1)',
  'JAVASCRIPT:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  '/v1/keys',
  'file:///etc/passwd',
])('no link leads to %s', (address) => {
  const page = shown(`[click](${address})`);
  expect(page.querySelector('a')).toBeNull();
  expect(page.textContent).toContain('click');
});

test('a web address is a link that does not hand the page over', () => {
  const link = shown('[docs](https://example.com/a)').querySelector('a');
  expect(link?.getAttribute('href')).toBe('https://example.com/a');
  expect(link?.getAttribute('rel')).toContain('noopener');
});

test('an image from elsewhere is a link, and not loaded', () => {
  const page = shown('![pixel](https://tracker.example/p.png)');
  expect(page.querySelector('img')).toBeNull();
  expect(page.querySelector('a')?.textContent).toBe('pixel');
});

test('characters that reorder text are written out', () => {
  expect(shown('a\u202Eb').textContent).toBe('a[U+202E]b');
});

test('a nesting without end is shown as text', () => {
  const page = shown(`${'> '.repeat(200)}deep`);
  expect(page.textContent).toContain('deep');
  expect(page.querySelectorAll('blockquote').length).toBeLessThan(40);
});
