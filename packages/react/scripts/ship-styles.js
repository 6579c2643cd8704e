// The stylesheet is shipped as it is written, with a declaration so that TypeScript lets it be imported.
import { copyFileSync, writeFileSync } from 'node:fs';

const dist = new URL('../dist/', import.meta.url);
copyFileSync(new URL('../src/styles.css', import.meta.url), new URL('styles.css', dist));
writeFileSync(new URL('styles.css.d.ts', dist), 'export {};\n');
