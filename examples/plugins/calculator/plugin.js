import { definePlugin } from '@toolgate/plugin';

// A quantity is a number and the powers of its base units: 5 m/s is {value: 5, units: {m: 1, s: -1}}.
const UNITS = {
  m: [1, { m: 1 }],
  km: [1000, { m: 1 }],
  cm: [0.01, { m: 1 }],
  mm: [0.001, { m: 1 }],
  mi: [1609.344, { m: 1 }],
  yd: [0.9144, { m: 1 }],
  ft: [0.3048, { m: 1 }],
  inch: [0.0254, { m: 1 }],
  kg: [1, { kg: 1 }],
  g: [0.001, { kg: 1 }],
  mg: [0.000001, { kg: 1 }],
  t: [1000, { kg: 1 }],
  lb: [0.45359237, { kg: 1 }],
  oz: [0.028349523125, { kg: 1 }],
  s: [1, { s: 1 }],
  ms: [0.001, { s: 1 }],
  min: [60, { s: 1 }],
  h: [3600, { s: 1 }],
  d: [86400, { s: 1 }],
  l: [0.001, { m: 3 }],
  ml: [0.000001, { m: 3 }],
  gal: [0.003785411784, { m: 3 }],
  ha: [10000, { m: 2 }],
  N: [1, { kg: 1, m: 1, s: -2 }],
  J: [1, { kg: 1, m: 2, s: -2 }],
  kJ: [1000, { kg: 1, m: 2, s: -2 }],
  kWh: [3600000, { kg: 1, m: 2, s: -2 }],
  cal: [4.184, { kg: 1, m: 2, s: -2 }],
  kcal: [4184, { kg: 1, m: 2, s: -2 }],
  W: [1, { kg: 1, m: 2, s: -3 }],
  kW: [1000, { kg: 1, m: 2, s: -3 }],
  Pa: [1, { kg: 1, m: -1, s: -2 }],
  bar: [100000, { kg: 1, m: -1, s: -2 }],
  kmh: [1 / 3.6, { m: 1, s: -1 }],
  mph: [0.44704, { m: 1, s: -1 }],
  B: [1, { B: 1 }],
  kB: [1000, { B: 1 }],
  MB: [1000000, { B: 1 }],
  GB: [1000000000, { B: 1 }],
  KiB: [1024, { B: 1 }],
  MiB: [1048576, { B: 1 }],
  GiB: [1073741824, { B: 1 }],
};

/** Numbers, names and signs. */
function tokensOf(text) {
  const tokens = text.match(/\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+|[A-Za-z]+|[-+*/%^(),]|\S/g) ?? [];
  if (tokens.length > 500) throw new Error('the expression is too long');
  return tokens;
}

/** The quantity with the powers of another added `times` times. */
function joined(quantity, other, value, times) {
  const units = { ...quantity.units };
  for (const [name, power] of Object.entries(other.units)) {
    units[name] = (units[name] ?? 0) + times * power;
    if (units[name] === 0) delete units[name];
  }
  return { value, units };
}

/** The base units in words, such as "kg m^2 s^-2". */
function unitText({ units }) {
  const names = Object.keys(units).sort();
  return names.map((name) => (units[name] === 1 ? name : `${name}^${units[name]}`)).join(' ');
}

function sameUnits(a, b, doing) {
  if (unitText(a) !== unitText(b)) {
    throw new Error(`cannot ${doing} "${unitText(a) || 'a number'}" and "${unitText(b) || 'a number'}"`);
  }
}

function unitless(quantity, what) {
  if (unitText(quantity) !== '')
    throw new Error(`${what} has the unit "${unitText(quantity)}", expected none`);
  return quantity.value;
}

function applied(name, args) {
  const numbers = {
    sqrt: 1,
    abs: 1,
    round: 1,
    floor: 1,
    ceil: 1,
    exp: 1,
    ln: 1,
    log: 1,
    sin: 1,
    cos: 1,
    tan: 1,
  };
  const [first] = args;
  if (first === undefined) throw new Error(`${name} needs an argument`);
  if (name === 'min' || name === 'max') {
    for (const other of args) sameUnits(first, other, 'compare');
    return { value: Math[name](...args.map(({ value }) => value)), units: first.units };
  }
  if (name === 'abs') return { value: Math.abs(first.value), units: first.units };
  if (!Object.hasOwn(numbers, name)) throw new Error(`there is no function "${name}"`);
  const own = { ln: Math.log, log: Math.log10 };
  return { value: (own[name] ?? Math[name])(unitless(first, `the argument of ${name}`)), units: {} };
}

/** Reads an expression by recursive descent: sums of products of powers of values. */
function quantityOf(tokens) {
  let at = 0;
  const next = () => tokens[at];
  const take = (token) => {
    if (next() !== token) throw new Error(`expected "${token}", got "${next() ?? 'the end'}"`);
    at += 1;
  };
  const sum = () => {
    let left = product();
    while (next() === '+' || next() === '-') {
      const sign = tokens[at++] === '+' ? 1 : -1;
      const right = product();
      sameUnits(left, right, 'add');
      left = { value: left.value + sign * right.value, units: left.units };
    }
    return left;
  };
  const product = () => {
    let left = signed();
    while (['*', '/', '%'].includes(next())) {
      const operator = tokens[at++];
      const right = signed();
      if (operator !== '*' && right.value === 0) throw new Error('a division by zero');
      if (operator === '%') left = { value: left.value % unitless(right, 'a modulus'), units: left.units };
      else if (operator === '*') left = joined(left, right, left.value * right.value, 1);
      else left = joined(left, right, left.value / right.value, -1);
    }
    return left;
  };
  const signed = () => {
    if (next() !== '-') return power();
    at += 1;
    const { value, units } = signed();
    return { value: -value, units };
  };
  const power = () => {
    const base = value();
    if (next() !== '^') return base;
    at += 1;
    const exponent = unitless(signed(), 'an exponent');
    if (unitText(base) !== '' && !Number.isInteger(exponent))
      throw new Error('a unit needs a whole exponent');
    const units = Object.fromEntries(Object.entries(base.units).map(([name, own]) => [name, own * exponent]));
    return { value: base.value ** exponent, units: exponent === 0 ? {} : units };
  };
  const value = () => {
    const token = tokens[at];
    if (token === '(') {
      at += 1;
      const inner = sum();
      take(')');
      return inner;
    }
    if (token !== undefined && /^[\d.]/.test(token)) {
      at += 1;
      const number = { value: Number(token), units: {} };
      // A unit right behind a number belongs to it: 2 km.
      return Object.hasOwn(UNITS, next() ?? '') ? withUnit(number) : number;
    }
    if (token !== undefined && tokens[at + 1] === '(') return call();
    const constants = { pi: Math.PI, e: Math.E };
    if (Object.hasOwn(constants, token ?? '')) {
      at += 1;
      return { value: constants[token], units: {} };
    }
    if (Object.hasOwn(UNITS, token ?? '')) return withUnit({ value: 1, units: {} });
    throw new Error(`expected a number or a unit, got "${token ?? 'the end'}"`);
  };
  const withUnit = (number) => {
    const [factor, units] = UNITS[tokens[at++]];
    return joined(number, { units }, number.value * factor, 1);
  };
  const call = () => {
    const name = tokens[at];
    at += 2;
    const args = next() === ')' ? [] : [sum()];
    while (next() === ',') {
      at += 1;
      args.push(sum());
    }
    take(')');
    return applied(name, args);
  };
  const result = sum();
  if (at < tokens.length) throw new Error(`"${next()}" is not expected here`);
  return result;
}

export default definePlugin({
  id: 'calculator',
  name: 'Calculator',
  version: '1.0.0',
  description: 'Calculates with numbers and units, and converts temperatures.',
  engine: '>=0.1',
  helpers: { UNITS, tokensOf, joined, unitText, sameUnits, unitless, applied, quantityOf },
  tools: [
    {
      name: 'calculate',
      description:
        'Evaluates an expression with + - * / % ^, parentheses, sqrt abs round floor ceil min max ln log exp sin ' +
        'cos tan, pi, e, and units: "2 km + 300 m in mi", "90 kmh * 20 min", "1.5 kWh / 3 h in W".',
      parameters: {
        type: 'object',
        properties: { expression: { type: 'string', maxLength: 1000 } },
        required: ['expression'],
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ expression }) => {
        const [text, target, ...more] = expression.split(/\s(?:in|to)\s/);
        if (more.length > 0) throw new Error('an expression has one "in" at most');
        const result = quantityOf(tokensOf(text));
        if (!Number.isFinite(result.value)) throw new Error('the result is not a number');
        const tidy = (value) => Number(value.toPrecision(12));
        if (target === undefined) return { value: tidy(result.value), unit: unitText(result) };
        const wanted = quantityOf(tokensOf(target));
        sameUnits(result, wanted, 'convert between');
        return { value: tidy(result.value / wanted.value), unit: target.trim() };
      },
    },
    {
      name: 'convert_temperature',
      description: 'Converts a temperature between C, F and K.',
      parameters: {
        type: 'object',
        properties: {
          value: { type: 'number' },
          from: { type: 'string', enum: ['C', 'F', 'K'] },
          to: { type: 'string', enum: ['C', 'F', 'K'] },
        },
        required: ['value', 'from', 'to'],
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ value, from, to }) => {
        const kelvin = { C: value + 273.15, F: ((value - 32) * 5) / 9 + 273.15, K: value }[from];
        if (kelvin < 0) throw new Error('nothing is colder than 0 K');
        const converted = { C: kelvin - 273.15, F: ((kelvin - 273.15) * 9) / 5 + 32, K: kelvin }[to];
        return { value: Number(converted.toFixed(6)), unit: to };
      },
    },
  ],
});
