// fetch, Headers and Response. The request is made by the gateway, if the permissions name its host.
(function (native, shared) {
  'use strict';
  const { binary, unbinary, view } = shared.part('text');
  const name = (text) => {
    const lower = String(text).toLowerCase();
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(lower)) throw new TypeError(`${text} is no name of a header`);
    return lower;
  };

  class Headers {
    #all = new Map();
    constructor(init) {
      if (init === undefined || init === null) return;
      const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
      for (const [key, value] of pairs) this.append(key, value);
    }
    append(key, value) {
      const [at, text] = [name(key), String(value).trim()];
      this.#all.set(at, this.#all.has(at) ? `${this.#all.get(at)}, ${text}` : text);
    }
    set(key, value) {
      this.#all.set(name(key), String(value).trim());
    }
    get(key) {
      return this.#all.get(name(key)) ?? null;
    }
    has(key) {
      return this.#all.has(name(key));
    }
    delete(key) {
      this.#all.delete(name(key));
    }
    forEach(callback, self) {
      for (const [key, value] of this) callback.call(self, value, key, this);
    }
    *entries() {
      for (const key of [...this.#all.keys()].sort()) yield [key, this.#all.get(key)];
    }
    *keys() {
      for (const [key] of this.entries()) yield key;
    }
    *values() {
      for (const [, value] of this.entries()) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
  }

  class Response {
    #body;
    #used = false;
    constructor(body = null, init = {}) {
      this.#body = body;
      this.status = init.status ?? 200;
      this.statusText = init.statusText ?? '';
      this.url = init.url ?? '';
      this.redirected = init.redirected ?? false;
      this.headers = new Headers(init.headers);
    }
    get ok() {
      return this.status >= 200 && this.status <= 299;
    }
    get bodyUsed() {
      return this.#used;
    }
    #take() {
      if (this.#used) throw new TypeError('the body was read already');
      this.#used = true;
      return this.#body ?? '';
    }
    async text() {
      const body = this.#take();
      return typeof body === 'string' ? body : native.decode(binary(view(body)), false);
    }
    async json() {
      return JSON.parse(await this.text());
    }
    async bytes() {
      const body = this.#take();
      return typeof body === 'string' ? native.encode(body.toWellFormed()) : view(body);
    }
    async arrayBuffer() {
      return (await this.bytes()).slice().buffer;
    }
    clone() {
      if (this.#used) throw new TypeError('the body was read already');
      return new Response(this.#body, this);
    }
  }

  // How the body of a request travels, and the content type that it has when nothing else is said.
  const carry = (body) => {
    if (body === undefined || body === null) return [{}, null];
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return [{ base64: native.btoa(binary(view(body))) }, null];
    if (body instanceof globalThis.URLSearchParams)
      return [{ text: String(body) }, 'application/x-www-form-urlencoded;charset=UTF-8'];
    return [{ text: String(body).toWellFormed() }, 'text/plain;charset=UTF-8'];
  };

  const send = async (input, init) => {
    const method = String(init.method ?? 'GET').toUpperCase();
    const headers = new Headers(init.headers);
    const [body, type] = carry(init.body);
    if (type !== null && !headers.has('content-type')) headers.set('content-type', type);
    const url = new globalThis.URL(String(input)).href;
    const text = await shared.ask('fetch', { method, url, headers: [...headers], ...body });
    const answer = JSON.parse(text);
    const content = answer.text ?? unbinary(native.atob(answer.base64));
    return new Response(content, { ...answer, redirected: answer.url !== url });
  };

  const fetch = (input, init = {}) => {
    const { signal } = init;
    if (!signal) return send(input, init);
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason));
      send(input, init).then(resolve, reject);
    });
  };
  return { fetch, Headers, Response };
});
