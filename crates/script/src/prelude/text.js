// TextEncoder and TextDecoder.
(function (native) {
  'use strict';
  const LABELS = ['utf-8', 'utf8', 'unicode-1-1-utf-8'];
  const CHUNK = 8192;
  const view = (bytes) => {
    if (bytes === undefined) return new Uint8Array(0);
    if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes);
    if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    throw new TypeError('expected bytes: an ArrayBuffer or a view of one');
  };
  // One character per byte.
  const binary = (bytes) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += CHUNK)
      text += String.fromCharCode.apply(null, bytes.subarray(at, at + CHUNK));
    return text;
  };
  const unbinary = (text) => {
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return bytes;
  };

  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      return native.encode(String(text).toWellFormed());
    }
    encodeInto(text, target) {
      let [read, written] = [0, 0];
      for (const character of String(text).toWellFormed()) {
        const bytes = native.encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        read += character.length;
        written += bytes.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #fatal;
    #ignoreBom;
    constructor(label = 'utf-8', options = {}) {
      if (!LABELS.includes(String(label).trim().toLowerCase()))
        throw new RangeError(`TextDecoder knows utf-8 only, not ${label}`);
      this.#fatal = Boolean(options.fatal);
      this.#ignoreBom = Boolean(options.ignoreBOM);
    }
    get encoding() {
      return 'utf-8';
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBom;
    }
    decode(bytes, options = {}) {
      if (options.stream) throw new TypeError('TextDecoder decodes all bytes at once; stream is not supported');
      const text = native.decode(binary(view(bytes)), this.#fatal);
      return this.#ignoreBom || !text.startsWith('\uFEFF') ? text : text.slice(1);
    }
  }
  return { TextEncoder, TextDecoder, binary, unbinary, view };
});
