// Writes src/wire.ts from the gateway's OpenAPI document; with --check only says whether it would change.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const DOCUMENT = fileURLToPath(new URL('../../../crates/gateway/openapi.json', import.meta.url));
const TARGET = fileURLToPath(new URL('../src/wire.ts', import.meta.url));

const { components } = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
const text = [
  '// Generated from crates/gateway/openapi.json by `npm run generate`. Do not edit.',
  ...Object.entries(components.schemas).map(declaration),
].join('\n\n');
const fresh = `${text}\n`;

if (process.argv.includes('--check')) {
  let kept = '';
  try {
    kept = readFileSync(TARGET, 'utf8');
  } catch {
    // Not there yet: as stale as can be.
  }
  if (kept !== fresh) {
    console.error('src/wire.ts is not what openapi.json says; run `npm run generate`');
    process.exit(1);
  }
} else {
  writeFileSync(TARGET, fresh);
}

function declaration([name, schema]) {
  const head = `${comment(schema.description, '')}export `;
  const open = isObject(schema) && schema.properties;
  return open ? `${head}interface ${name} ${type(schema, '')}` : `${head}type ${name} = ${type(schema, '')};`;
}

/** The TypeScript type of a schema, for a place indented by `indent`. */
function type(schema, indent) {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.enum) return schema.enum.map((value) => quote(value)).join(' | ');
  if (schema.const !== undefined) return quote(schema.const);
  const choices = schema.oneOf ?? schema.anyOf;
  const parts = schema.allOf?.filter((part) => !isNarrowing(part));
  if (parts) return join(parts, ' & ', indent);
  if (choices) return join(choices, ' | ', indent);
  if (Array.isArray(schema.type)) {
    return join(
      schema.type.map((one) => ({ ...schema, type: one })),
      ' | ',
      indent,
    );
  }
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array': {
      const item = type(schema.items ?? {}, indent);
      return /[|&]/.test(item) ? `Array<${item}>` : `${item}[]`;
    }
    case 'object':
      return object(schema, indent);
    default:
      return 'unknown';
  }
}

function object(schema, indent) {
  if (!schema.properties) return 'Record<string, unknown>';
  const required = new Set(schema.required);
  const inner = `${indent}  `;
  const members = Object.entries(schema.properties).map(([name, property]) => {
    const mark = required.has(name) ? '' : '?';
    return `${comment(property.description, inner)}${inner}${name}${mark}: ${type(property, inner)};`;
  });
  return `{\n${members.join('\n')}\n${indent}}`;
}

function join(schemas, separator, indent) {
  const types = [...new Set(schemas.map((one) => type(one, indent)))];
  const wrapped = types.length > 1 && separator === ' & ';
  return types.map((one) => (wrapped && one.includes(' | ') ? `(${one})` : one)).join(separator);
}

/** `allOf: [body, {oneOf: […]}]` says which members go together: more than the types need to. */
function isNarrowing(schema) {
  return Boolean(schema.oneOf ?? schema.anyOf);
}

function isObject(schema) {
  return schema.type === 'object' && !schema.allOf && !schema.oneOf;
}

function quote(value) {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

function comment(words, indent) {
  return words ? `${indent}/** ${words.replaceAll('\n', ' ')} */\n` : '';
}
