// Host calls, timers, the log, and the way to the other parts. Read when the code first uses one of its names.
(function (native) {
  'use strict';
  const loaded = Object.create(null);
  const part = (name) => (loaded[name] ??= native.load(name)(native, shared));

  // Host calls: some at once, the others wait here.
  const AT_ONCE = 8;
  const open = new Map();
  const waiting = [];
  const pump = () => {
    while (waiting.length > 0 && open.size < AT_ONCE) {
      const call = waiting.shift();
      try {
        open.set(native.send(call.operation, call.body), call);
      } catch (error) {
        call.reject(error);
      }
    }
  };
  const ask = (operation, body) =>
    new Promise((resolve, reject) => {
      waiting.push({ operation, body: JSON.stringify(body), resolve, reject });
      pump();
    });
  const settle = (id, ok, text) => {
    const call = open.get(id);
    open.delete(id);
    if (ok) call.resolve(text);
    else call.reject(new Error(text));
    pump();
  };

  const timers = new Map();
  const start = (repeats) => (callback, delay, ...rest) => {
    if (typeof callback !== 'function') throw new TypeError('a timer needs a function');
    const every = Math.max(Number(delay) || 0, repeats ? 1 : 0);
    const id = native.timer(every);
    timers.set(id, { callback, rest, every, repeats });
    return id;
  };
  const stop = (id) => {
    if (timers.delete(id)) native.clear(id);
  };
  const fire = (id) => {
    const timer = timers.get(id);
    if (!timer) return;
    if (timer.repeats) native.again(id, timer.every);
    else timers.delete(id);
    timer.callback(...timer.rest);
  };

  const show = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };
  const say = (level) => (...values) => native.log(level, values.map(show).join(' ').toWellFormed());

  const key = (value) => {
    if (typeof value !== 'string') throw new TypeError('a key of storage is a text');
    return value.toWellFormed();
  };
  const parse = (text) => (text === '' ? undefined : JSON.parse(text));
  const storage = {
    get: async (name) => parse(await ask('storage', { op: 'get', key: key(name) })),
    set: async (name, value) => {
      if (JSON.stringify(value) === undefined) throw new TypeError('storage keeps JSON, and this value is none');
      await ask('storage', { op: 'set', key: key(name), value });
    },
    delete: async (name) => {
      await ask('storage', { op: 'delete', key: key(name) });
    },
    list: async (prefix = '') => parse(await ask('storage', { op: 'list', prefix: key(prefix) })) ?? [],
  };

  const crypto = {
    randomUUID: () => native.uuid(),
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || array instanceof DataView || /Float/.test(array[Symbol.toStringTag]))
        throw new TypeError('getRandomValues takes an array of integers');
      if (array.byteLength > 65536) throw new RangeError('getRandomValues gives at most 65536 bytes');
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(native.random(array.byteLength));
      return array;
    },
  };

  const console = { log: say('info'), info: say('info'), debug: say('debug'), trace: say('debug') };
  console.warn = say('warn');
  console.error = say('error');

  const shared = { ask, part, timeout: start(false), stop };
  const date = (name) =>
    function (locales, options) {
      return part('intl').formatDate(this, name, locales, options);
    };
  const number = function (locales, options) {
    return new (part('intl').Intl.NumberFormat)(locales, options).format(this.valueOf());
  };
  return {
    settle,
    fire,
    date,
    number,
    console,
    storage,
    crypto,
    setTimeout: start(false),
    setInterval: start(true),
    clearTimeout: stop,
    clearInterval: stop,
    queueMicrotask: (callback) => void Promise.resolve().then(callback),
    btoa: (text) => native.btoa(String(text)),
    atob: (text) => native.atob(String(text)),
    part,
  };
});
