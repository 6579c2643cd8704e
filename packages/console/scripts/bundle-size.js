// Fails when the first load of the console is larger than it may be: the page, and everything that its entry
// imports statically, compressed as it is sent.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const FIRST_LOAD_BYTES_MAX = 250_000;
const dist = new URL('../dist/', import.meta.url);

const html = readFileSync(new URL('index.html', dist), 'utf8');
const files = new Set(['/index.html']);
for (const [, path] of html.matchAll(/(?:src|href)="(\/[^"]+)"/g)) files.add(path);
// The first screen is the chat; its chunk and styles are loaded at once after the entry.
for (const path of files) {
  if (!path.endsWith('.js')) continue;
  for (const [, found] of read(path).matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g))
    files.add(`/assets/${found}`);
  for (const [, found] of read(path).matchAll(/["/](chat-screen-[\w-]+\.(?:js|css))"/g))
    files.add(`/assets/${found}`);
}
const sizes = [...files].map((path) => [path, gzipSync(readFileSync(new URL(`.${path}`, dist))).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
for (const [path, size] of sizes) console.log(`${String(size).padStart(8)} ${path}`);
console.log(`${String(total).padStart(8)} first load, gzip; at most ${FIRST_LOAD_BYTES_MAX}`);
if (total > FIRST_LOAD_BYTES_MAX) process.exit(1);

function read(path) {
  return readFileSync(new URL(`.${path}`, dist), 'utf8');
}
