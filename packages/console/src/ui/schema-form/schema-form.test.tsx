// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, test } from 'vitest';
import { initialValue, type Schema } from './schema.ts';
import { SchemaForm } from './schema-form.tsx';

afterEach(cleanup);

let value: unknown;

function Form({ schema }: { readonly schema: Schema }) {
  const [current, setCurrent] = useState(() => initialValue(schema, schema));
  value = current;
  return <SchemaForm schema={schema} value={current} onChange={setCurrent} />;
}

function type(label: string, text: string): void {
  fireEvent.change(screen.getByLabelText(label), { target: { value: text } });
}

test('numbers become numbers, and what is no number is told', () => {
  render(<Form schema={{ type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }} />);
  expect(screen.queryByText('This is required.')).toBeNull();
  fireEvent.blur(screen.getByLabelText('n'));
  expect(screen.getByText('This is required.')).toBeTruthy();
  type('n', '12');
  expect(value).toEqual({ n: 12 });
  type('n', 'twelve');
  expect(screen.getByLabelText('n').getAttribute('aria-invalid')).toBe('true');
});

test('an emptied optional text is left out, an emptied required one is empty', () => {
  const text = { type: 'string' };
  render(<Form schema={{ type: 'object', properties: { a: text, b: text }, required: ['b'] }} />);
  type('a optional', 'x');
  type('b', 'y');
  expect(value).toEqual({ a: 'x', b: 'y' });
  type('a optional', '');
  type('b', '');
  expect(value).toEqual({ b: '' });
});

test('items are added and removed', () => {
  render(
    <Form schema={{ type: 'object', properties: { list: { type: 'array', items: { type: 'string' } } } }} />,
  );
  fireEvent.click(screen.getByText('Add an item'));
  type('Item', 'one');
  expect(value).toEqual({ list: ['one'] });
  fireEvent.click(screen.getByLabelText('Remove item 1'));
  expect(value).toEqual({});
});

test('JSON that is not JSON changes nothing and says so', () => {
  render(<Form schema={{ type: 'object', properties: { a: { type: 'string', default: 'x' } } }} />);
  fireEvent.click(screen.getByText('JSON'));
  type('Input as JSON', '{"a": ');
  expect(value).toEqual({ a: 'x' });
  type('Input as JSON', '{"a": 5}');
  expect(value).toEqual({ a: 5 });
  expect(screen.getByText(/\/a:/)).toBeTruthy();
});
