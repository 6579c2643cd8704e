// AbortController and AbortSignal: what `fetch` needs of them.
(function (native, shared) {
  'use strict';
  const error = (name, message) => Object.assign(new Error(message), { name });
  class AbortSignal {
    aborted = false;
    reason = undefined;
    onabort = null;
    #listeners = new Set();
    addEventListener(type, listener) {
      if (type === 'abort') this.#listeners.add(listener);
    }
    removeEventListener(type, listener) {
      if (type === 'abort') this.#listeners.delete(listener);
    }
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    static fire(signal, reason) {
      if (signal.aborted) return;
      signal.aborted = true;
      signal.reason = reason ?? error('AbortError', 'This operation was aborted');
      const event = { type: 'abort', target: signal };
      signal.onabort?.(event);
      for (const listener of signal.#listeners) listener.call(signal, event);
    }
    static abort(reason) {
      const signal = new AbortSignal();
      fire(signal, reason);
      return signal;
    }
    static timeout(millis) {
      const signal = new AbortSignal();
      shared.timeout(() => fire(signal, error('TimeoutError', 'The operation was aborted due to timeout')), millis);
      return signal;
    }
    static any(signals) {
      const any = new AbortSignal();
      for (const signal of signals) {
        if (signal.aborted) fire(any, signal.reason);
        else signal.addEventListener('abort', () => fire(any, signal.reason));
      }
      return any;
    }
  }
  const { fire } = AbortSignal;
  delete AbortSignal.fire;
  class AbortController {
    signal = new AbortSignal();
    abort(reason) {
      fire(this.signal, reason);
    }
  }
  return { AbortController, AbortSignal };
});
