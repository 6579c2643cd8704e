// structuredClone.
(function () {
  'use strict';
  const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const refuse = (what) => {
    throw Object.assign(new Error(`${what} could not be cloned.`), { name: 'DataCloneError' });
  };
  const clone = (value, seen) => {
    if (typeof value === 'function' || typeof value === 'symbol') refuse(String(value).slice(0, 100));
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => (seen.set(value, copy), copy);
    const inner = (one) => clone(one, seen);
    if (Array.isArray(value)) {
      const copy = keep(new Array(value.length));
      for (const name of Object.keys(value)) copy[name] = inner(value[name]);
      return copy;
    }
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = inner(value.buffer);
      const length = value instanceof DataView ? value.byteLength : value.length;
      return keep(new value.constructor(buffer, value.byteOffset, length));
    }
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [name, one] of value) copy.set(inner(name), inner(one));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const one of value) copy.add(inner(one));
      return copy;
    }
    if (value instanceof Error) {
      const copy = keep(new (ERRORS[value.name] ?? Error)(value.message));
      copy.stack = value.stack;
      if ('cause' in value) copy.cause = inner(value.cause);
      return copy;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef)
      refuse('#<Promise or weak collection>');
    for (const kind of [Boolean, Number, String, BigInt]) {
      if (value instanceof kind) return keep(Object(value.valueOf()));
    }
    const copy = keep({});
    for (const name of Object.keys(value)) copy[name] = inner(value[name]);
    return copy;
  };
  return { structuredClone: (value) => clone(value, new Map()) };
});
