// The names that the code finds besides the language itself. What stands behind them is read when one is first used, because
// every call has a realm of its own and most calls use none of them. Nothing here keeps the code from anything: what it
// may reach is decided outside of its process.
(function (load) {
  'use strict';
  let core;
  const open = () => (core ??= load());
  const put = (target, name, value) =>
    Object.defineProperty(target, name, { value, writable: true, configurable: true });
  const lazy = (target, name, find) =>
    Object.defineProperty(target, name, {
      configurable: true,
      get() {
        const value = find(open(), name);
        put(target, name, value);
        return value;
      },
      set(value) {
        put(this, name, value);
      },
    });
  const own =
    'console storage crypto setTimeout setInterval clearTimeout clearInterval queueMicrotask btoa atob';
  for (const name of own.split(' ')) lazy(globalThis, name, (core) => core[name]);
  const parts = {
    text: 'TextEncoder TextDecoder',
    url: 'URL URLSearchParams',
    fetch: 'fetch Headers Response',
    abort: 'AbortController AbortSignal',
    clone: 'structuredClone',
    intl: 'Intl',
  };
  for (const part in parts)
    for (const name of parts[part].split(' ')) lazy(globalThis, name, (core) => core.part(part)[name]);
  for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'])
    lazy(Date.prototype, name, (core) => core.date(name));
  for (const type of [Number, BigInt]) lazy(type.prototype, 'toLocaleString', (core) => core.number);
  return { settle: (...answer) => open().settle(...answer), fire: (id) => open().fire(id) };
});
