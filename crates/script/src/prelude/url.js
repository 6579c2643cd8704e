// URL and URLSearchParams, on the parser of the gateway.
(function (native) {
  'use strict';
  const PARTS = [
    'href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash',
  ];
  const text = (value) => String(value).toWellFormed();

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(init = '') {
      if (init !== null && typeof init === 'object') {
        const pairs = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
        for (const pair of pairs) {
          const [name, value, more] = [...pair];
          if (value === undefined || more !== undefined) throw new TypeError('expected pairs of a name and a value');
          this.#pairs.push([text(name), text(value)]);
        }
      } else {
        this.#pairs = JSON.parse(native.parseForm(text(init).replace(/^\?/, '')));
      }
    }
    static follow(query, changed) {
      const params = new URLSearchParams(query);
      params.#changed = changed;
      return params;
    }
    replace(query) {
      this.#pairs = JSON.parse(native.parseForm(query.replace(/^\?/, '')));
    }
    #set(pairs) {
      this.#pairs = pairs;
      this.#changed(this.toString());
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#set([...this.#pairs, [text(name), text(value)]]);
    }
    delete(name, value) {
      const goes = ([key, held]) => key === text(name) && (value === undefined || held === text(value));
      this.#set(this.#pairs.filter((pair) => !goes(pair)));
    }
    get(name) {
      return this.#pairs.find(([key]) => key === text(name))?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter(([key]) => key === text(name)).map(([, value]) => value);
    }
    has(name, value) {
      return this.#pairs.some(([key, held]) => key === text(name) && (value === undefined || held === text(value)));
    }
    set(name, value) {
      const at = this.#pairs.findIndex(([key]) => key === text(name));
      if (at < 0) return this.append(name, value);
      const others = ([key], index) => index <= at || key !== text(name);
      const pairs = this.#pairs.map((pair, index) => (index === at ? [pair[0], text(value)] : pair));
      this.#set(pairs.filter(others));
    }
    sort() {
      this.#set([...this.#pairs].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
    }
    forEach(callback, self) {
      for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
    }
    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value];
    }
    *keys() {
      for (const [name] of this.#pairs) yield name;
    }
    *values() {
      for (const [, value] of this.#pairs) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return native.writeForm(JSON.stringify(this.#pairs));
    }
  }
  const { follow } = URLSearchParams;
  const { replace } = URLSearchParams.prototype;
  delete URLSearchParams.follow;
  delete URLSearchParams.prototype.replace;

  class URL {
    #parts;
    #params;
    constructor(address, base) {
      this.#parts = JSON.parse(native.url(text(address), base === undefined ? undefined : text(base)));
    }
    static canParse(address, base) {
      try {
        return Boolean(new URL(address, base));
      } catch {
        return false;
      }
    }
    static parse(address, base) {
      return URL.canParse(address, base) ? new URL(address, base) : null;
    }
    static read(url, at) {
      return url.#parts[at];
    }
    static write(url, part, value) {
      url.#parts = JSON.parse(native.setUrl(url.#parts[0], part, text(value)));
      if (url.#params && part !== 'hash') replace.call(url.#params, url.#parts[9]);
    }
    get searchParams() {
      this.#params ??= follow(this.#parts[9], (query) => {
        this.#parts = JSON.parse(native.setUrl(this.#parts[0], 'search', query));
      });
      return this.#params;
    }
    toString() {
      return this.#parts[0];
    }
    toJSON() {
      return this.#parts[0];
    }
  }
  const { read, write } = URL;
  delete URL.read;
  delete URL.write;
  PARTS.forEach((part, at) => {
    const property = { configurable: true, enumerable: true, get() { return read(this, at); } };
    if (part !== 'origin') property.set = function (value) { write(this, part, value); };
    Object.defineProperty(URL.prototype, part, property);
  });
  return { URL, URLSearchParams };
});
