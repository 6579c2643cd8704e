// Intl.DateTimeFormat and Intl.NumberFormat for en-US; other locales are written as en-US, and the log says so once.
// Time zones come from the gateway's own data. What it writes is what Node writes (tests/it/intl.rs).
(function (native) {
  'use strict';
  const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
  const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
  // The space before AM and PM, which Node writes as a plain one everywhere but in parts.
  const NARROW = '\u202F';
  const AMERICA = { A: 'Atlantic', E: 'Eastern', C: 'Central', M: 'Mountain', P: 'Pacific', AK: 'Alaska', H: 'Hawaii-Aleutian' };
  const LONG = {
    CET: 'Central European Standard Time', CEST: 'Central European Summer Time',
    EET: 'Eastern European Standard Time', EEST: 'Eastern European Summer Time',
    WET: 'Western European Standard Time', WEST: 'Western European Summer Time',
    GMT: 'Greenwich Mean Time', BST: 'British Summer Time', MSK: 'Moscow Standard Time',
    JST: 'Japan Standard Time', KST: 'Korean Standard Time', IST: 'India Standard Time', CST: 'China Standard Time',
    HKT: 'Hong Kong Standard Time', PKT: 'Pakistan Standard Time', SAST: 'South Africa Standard Time',
    EAT: 'East Africa Time', CAT: 'Central Africa Time', WAT: 'West Africa Standard Time',
    AEST: 'Australian Eastern Standard Time', AEDT: 'Australian Eastern Daylight Time',
    ACST: 'Australian Central Standard Time', ACDT: 'Australian Central Daylight Time',
    AWST: 'Australian Western Standard Time',
    NZST: 'New Zealand Standard Time', NZDT: 'New Zealand Daylight Time',
  };
  const OPTIONS = {
    weekday: ['long', 'short', 'narrow'], era: ['long', 'short', 'narrow'], year: ['numeric', '2-digit'],
    month: ['numeric', '2-digit', 'long', 'short', 'narrow'], day: ['numeric', '2-digit'],
    hour: ['numeric', '2-digit'], minute: ['numeric', '2-digit'], second: ['numeric', '2-digit'],
    timeZoneName: ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric'],
    hourCycle: ['h11', 'h12', 'h23', 'h24'],
    dateStyle: ['full', 'long', 'medium', 'short'], timeStyle: ['full', 'long', 'medium', 'short'],
  };
  const DATE = ['weekday', 'year', 'month', 'day'];
  const TIME = ['dayPeriod', 'hour', 'minute', 'second', 'fractionalSecondDigits'];
  const DATE_STYLES = {
    full: { weekday: 'long', month: 'long', day: 'numeric', year: 'numeric' },
    long: { month: 'long', day: 'numeric', year: 'numeric' },
    medium: { month: 'short', day: 'numeric', year: 'numeric' },
    short: { month: 'numeric', day: 'numeric', year: '2-digit' },
  };
  const CLOCK = { hour: 'numeric', minute: '2-digit', second: '2-digit' };
  const TIME_STYLES = {
    full: { ...CLOCK, timeZoneName: 'long' },
    long: { ...CLOCK, timeZoneName: 'short' },
    medium: CLOCK,
    short: { hour: 'numeric', minute: '2-digit' },
  };

  let told = false;
  const canonical = (locales) => {
    const list = locales === undefined ? [] : typeof locales === 'string' ? [locales] : [...locales];
    for (const locale of list) {
      if (typeof locale !== 'string' || !/^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$/.test(locale))
        throw new RangeError(`Incorrect locale information provided`);
    }
    if (!told && list.length > 0 && !/^en(-US)?$/i.test(list[0])) {
      told = true;
      native.log('warn', `the locale ${list[0]} is not known here; numbers and dates are written as in en-US`);
    }
    return list;
  };
  const choose = (type, options, name, allowed, usual) => {
    const value = options[name];
    if (value === undefined) return usual;
    if (!allowed.includes(String(value))) throw new RangeError(`Value ${value} out of range for Intl.${type} options property ${name}`);
    return String(value);
  };
  const count = (options, name, least, most, usual) => {
    const value = options[name];
    if (value === undefined) return usual;
    const number = Math.floor(Number(value));
    if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
    return number;
  };
  const pad = (number, digits = 2) => String(number).padStart(digits, '0');

  // The options with what holds when nothing is said, as the three methods of Date differ in it.
  const complete = (given, required, usual) => {
    const options = {};
    for (const [name, allowed] of Object.entries(OPTIONS)) {
      const value = choose('DateTimeFormat', given, name, allowed);
      if (value !== undefined) options[name] = value;
    }
    options.fractionalSecondDigits = count(given, 'fractionalSecondDigits', 1, 3);
    if (given.hour12 !== undefined) options.hourCycle = given.hour12 ? 'h12' : 'h24';
    options.timeZone = JSON.parse(native.zoned(0, given.timeZone === undefined ? 'UTC' : String(given.timeZone)))[8];
    const { dateStyle, timeStyle } = options;
    if (dateStyle || timeStyle) {
      const clash = [...DATE, ...TIME, 'era', 'timeZoneName'].find((name) => given[name] !== undefined);
      if (clash) throw new TypeError(`Can't set option ${clash} when ${dateStyle ? 'dateStyle' : 'timeStyle'} is used`);
      if (dateStyle && required === 'time') throw new TypeError('Invalid option : dateStyle');
      if (timeStyle && required === 'date') throw new TypeError('Invalid option : timeStyle');
      return { ...options, ...DATE_STYLES[dateStyle], ...TIME_STYLES[timeStyle] };
    }
    const wanted = required === 'date' ? DATE : required === 'time' ? TIME : [...DATE, ...TIME];
    if (wanted.every((name) => options[name] === undefined)) {
      if (usual !== 'time') Object.assign(options, { year: 'numeric', month: 'numeric', day: 'numeric' });
      if (usual !== 'date') Object.assign(options, CLOCK);
    }
    return options;
  };

  const offset = (seconds, long) => {
    const minutes = Math.abs(Math.round(seconds / 60));
    const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
    if (minutes === 0) return long ? 'GMT+00:00' : 'GMT';
    const sign = seconds < 0 ? '-' : '+';
    return long ? `GMT${sign}${pad(hours)}:${pad(rest)}` : `GMT${sign}${hours}${rest ? `:${pad(rest)}` : ''}`;
  };
  const zoneName = (style, at) => {
    const american = /^(America|US|Canada)\/|^Pacific\/Honolulu$/.test(at.zone) && /^(A|E|C|M|P|AK|H)[SD]T$/.exec(at.abbreviation);
    if (/Offset/.test(style)) return offset(at.offset, style === 'longOffset').replace(/^GMT$/, 'GMT+0');
    if (/^(Etc\/)?(UTC|UCT|Universal|Zulu)$/.test(at.zone)) return /^long/.test(style) ? 'Coordinated Universal Time' : 'UTC';
    if (!/^long/.test(style)) return american ? at.abbreviation : offset(at.offset, false);
    if (american) return `${AMERICA[american[1]]} ${/DT$/.test(at.abbreviation) ? 'Daylight' : 'Standard'} Time`;
    return (/^(America|Etc)\//.test(at.zone) ? undefined : LONG[at.abbreviation]) ?? offset(at.offset, true);
  };

  const read = (millis, zone) => {
    const [year, month, day, weekday, hour, minute, second, seconds, name, abbreviation] = JSON.parse(native.zoned(millis, zone));
    const part = ((millis % 1000) + 1000) % 1000;
    return { year, month, day, weekday, hour, minute, second, part, offset: seconds, zone: name, abbreviation };
  };
  const word = (style, text) => (style === 'long' ? text : style === 'narrow' ? text[0] : text.slice(0, 3));
  const digits = (style, number) => (style === '2-digit' ? pad(number % 100) : String(number));

  const dateParts = (options, at) => {
    const parts = {};
    if (options.weekday) parts.weekday = word(options.weekday, DAYS[at.weekday]);
    if (options.year) parts.year = digits(options.year, at.year > 0 ? at.year : 1 - at.year);
    if (options.day) parts.day = digits(options.day, at.day);
    const written = options.month && !['numeric', '2-digit'].includes(options.month);
    if (options.month) parts.month = written ? word(options.month, MONTHS[at.month - 1]) : digits(options.month, at.month);
    const has = (...names) => DATE.every((name) => names.includes(name) === (parts[name] !== undefined));
    if (has('weekday', 'day')) return list(parts, 'day', ' ', 'weekday');
    if (has('weekday', 'year')) return list(parts, 'year', ' ', 'weekday');
    if (written) {
      if (!parts.day) return list(parts, 'month', ' ', 'year', ' ', 'weekday');
      return list(parts, 'weekday', ', ', 'month', ' ', 'day', ', ', 'year');
    }
    const rest = list(parts, 'month', '/', 'day', '/', 'year');
    if (!parts.weekday) return rest;
    return [{ type: 'weekday', value: parts.weekday }, ...(rest.length ? [{ type: 'literal', value: ', ' }, ...rest] : [])];
  };
  // Names and what stands between them; what stands before a name that is missing is left out.
  const list = (parts, ...order) => {
    const made = [];
    order.forEach((name, at) => {
      if (at % 2 === 1 || parts[name] === undefined) return;
      if (made.length > 0) made.push({ type: 'literal', value: order[at - 1] });
      made.push({ type: name, value: parts[name] });
    });
    return made;
  };
  const timeParts = (options, at) => {
    const cycle = options.hourCycle ?? 'h12';
    const twelve = cycle === 'h11' || cycle === 'h12';
    const parts = {};
    if (options.hour) {
      const hour = { h11: at.hour % 12, h12: at.hour % 12 || 12, h23: at.hour, h24: at.hour || 24 }[cycle];
      parts.hour = options.hour === '2-digit' || !twelve ? pad(hour) : String(hour);
    }
    const together = [options.hour, options.minute, options.second].filter(Boolean).length > 1;
    if (options.minute) parts.minute = together ? pad(at.minute) : String(at.minute);
    if (options.second) parts.second = together ? pad(at.second) : String(at.second);
    if (options.fractionalSecondDigits) parts.fractionalSecond = pad(at.part, 3).slice(0, options.fractionalSecondDigits);
    const made = list(parts, 'hour', ':', 'minute', ':', 'second', '.', 'fractionalSecond');
    if (options.hour && twelve) made.push({ type: 'literal', value: NARROW }, { type: 'dayPeriod', value: at.hour < 12 ? 'AM' : 'PM' });
    return made;
  };
  const dateTimeParts = (options, at) => {
    const [date, time] = [dateParts(options, at), timeParts(options, at)];
    if (options.era && date.length > 0)
      date.push({ type: 'literal', value: ' ' }, { type: 'era', value: at.year > 0 ? { long: 'Anno Domini', short: 'AD', narrow: 'A' }[options.era] : { long: 'Before Christ', short: 'BC', narrow: 'B' }[options.era] });
    if (options.timeZoneName) {
      if (time.length > 0) time.push({ type: 'literal', value: ' ' });
      time.push({ type: 'timeZoneName', value: zoneName(options.timeZoneName, at) });
    }
    const only = DATE.every((name) => (name === 'weekday') === (options[name] !== undefined));
    const join = options.month === 'long' ? ' at ' : only ? ' ' : ', ';
    return date.length && time.length ? [...date, { type: 'literal', value: join }, ...time] : [...date, ...time];
  };
  const text = (parts) => parts.map((part) => part.value).join('').replaceAll(NARROW, ' ');
  const moment = (date) => {
    const millis = date === undefined ? Date.now() : Number(date);
    if (!Number.isFinite(millis) || Math.abs(millis) > 8.64e15) throw new RangeError('Invalid time value');
    return Math.trunc(millis);
  };

  class DateTimeFormat {
    #options;
    constructor(locales, options) {
      canonical(locales);
      this.#options = complete(options ?? {}, 'any', 'date');
      this.format = (date) => text(this.formatToParts(date));
    }
    formatToParts(date) {
      return dateTimeParts(this.#options, read(moment(date), this.#options.timeZone));
    }
    formatRange(from, to) {
      const [start, end] = [this.format(from), this.format(to)];
      return start === end ? start : `${start} – ${end}`;
    }
    resolvedOptions() {
      const { timeZone, fractionalSecondDigits, ...rest } = this.#options;
      if (rest.hour && !rest.hourCycle) Object.assign(rest, { hourCycle: 'h12', hour12: true });
      return { locale: 'en-US', calendar: 'gregory', numberingSystem: 'latn', timeZone, ...rest };
    }
    static supportedLocalesOf(locales) {
      return canonical(locales).filter((locale) => /^en(-US)?$/i.test(locale));
    }
  }
  const METHODS = { toLocaleString: ['any', 'all'], toLocaleDateString: ['date', 'date'], toLocaleTimeString: ['time', 'time'] };
  const formatDate = (date, method, locales, given) => {
    const millis = Date.prototype.getTime.call(date);
    if (Number.isNaN(millis)) return 'Invalid Date';
    canonical(locales);
    const options = complete(given ?? {}, ...METHODS[method]);
    return text(dateTimeParts(options, read(millis, options.timeZone)));
  };

  const SYMBOLS = { USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹', CNY: 'CN¥', KRW: '₩', CAD: 'CA$', AUD: 'A$', MXN: 'MX$', NZD: 'NZ$', BRL: 'R$', HKD: 'HK$', TWD: 'NT$', ILS: '₪', VND: '₫', PHP: '₱', XAF: 'FCFA', XOF: 'F\u202FCFA', XCD: 'EC$' };
  const WHOLE = ['JPY', 'KRW', 'VND', 'CLP', 'XAF', 'XOF', 'ISK', 'PYG', 'UGX', 'RWF'];
  const SCALES = [[1e12, 'T', 'trillion'], [1e9, 'B', 'billion'], [1e6, 'M', 'million'], [1e3, 'K', 'thousand']];

  // Decimal digits of a number as it is written shortest, and how many stand before the point.
  const decimal = (number) => {
    const [mantissa, exponent = '0'] = String(number).toLowerCase().split('e');
    const [whole, fraction = ''] = mantissa.split('.');
    const all = (whole + fraction).replace(/^0+(?=\d)/, '');
    const dropped = whole.length + fraction.length - all.length;
    return { digits: all, point: whole.length - dropped + Number(exponent) };
  };
  // Rounded half away from zero to so many digits after the point.
  const round = ({ digits, point }, places) => {
    const keep = point + places;
    if (keep >= digits.length) return { digits, point };
    if (keep < 0) return { digits: '0', point: 1 };
    let kept = digits.slice(0, keep) || '0';
    let at = keep === 0 ? point + 1 : point;
    if (digits[keep] >= '5') {
      const raised = (BigInt(kept) + 1n).toString().padStart(kept.length, '0');
      at += raised.length - kept.length;
      kept = raised;
    }
    return { digits: kept, point: at };
  };
  const write = ({ digits, point }, least, most) => {
    const whole = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0';
    const fraction = (point > 0 ? digits.slice(point) : '0'.repeat(-point) + digits).slice(0, most);
    const cut = fraction.replace(/0+$/, '');
    return [whole.replace(/^0+(?=\d)/, ''), cut.padEnd(least, '0')];
  };

  class NumberFormat {
    #options;
    constructor(locales, options = {}) {
      canonical(locales);
      const style = choose('NumberFormat', options, 'style', ['decimal', 'percent', 'currency', 'unit'], 'decimal');
      const currency = options.currency === undefined ? undefined : String(options.currency).toUpperCase();
      if (style === 'currency' && currency === undefined) throw new TypeError('Currency code is required with currency style.');
      if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${options.currency}`);
      if (style === 'unit' && options.unit === undefined) throw new TypeError('Unit is required with unit style.');
      const notation = choose('NumberFormat', options, 'notation', ['standard', 'compact', 'scientific', 'engineering'], 'standard');
      const own = style !== 'currency' ? (style === 'percent' ? [0, 0] : [0, 3]) : WHOLE.includes(currency) ? [0, 0] : [2, 2];
      const plain = notation === 'compact' ? [0, 0] : own;
      const least = count(options, 'minimumFractionDigits', 0, 100);
      const most = count(options, 'maximumFractionDigits', 0, 100);
      if (least !== undefined && most !== undefined && least > most) throw new RangeError('maximumFractionDigits value is out of range.');
      const significant = [
        count(options, 'minimumSignificantDigits', 1, 21),
        count(options, 'maximumSignificantDigits', 1, 21),
      ];
      this.#options = {
        style, currency, notation,
        unit: options.unit,
        compactDisplay: choose('NumberFormat', options, 'compactDisplay', ['short', 'long'], 'short'),
        currencyDisplay: choose('NumberFormat', options, 'currencyDisplay', ['symbol', 'narrowSymbol', 'code', 'name'], 'symbol'),
        signDisplay: choose('NumberFormat', options, 'signDisplay', ['auto', 'never', 'always', 'exceptZero', 'negative'], 'auto'),
        minimumIntegerDigits: count(options, 'minimumIntegerDigits', 1, 21, 1),
        minimumFractionDigits: least ?? Math.min(plain[0], most ?? plain[0]),
        maximumFractionDigits: most ?? Math.max(plain[1], least ?? plain[1]),
        significant: significant.some((one) => one !== undefined) ? [significant[0] ?? 1, significant[1] ?? 21] : undefined,
        rounded: least !== undefined || most !== undefined,
        grouping: !(options.useGrouping === false || options.useGrouping === 'false'),
      };
      this.format = (number) => this.#write(number);
    }
    #digits(number) {
      const options = this.#options;
      const value = decimal(number);
      if (options.significant) {
        const zeros = value.digits === '0' ? 1 : value.point;
        const exact = round(value, options.significant[1] - zeros);
        const [whole, fraction] = write(exact, 0, 100);
        const seen = (whole === '0' ? '' : whole).length + (whole === '0' ? fraction.replace(/^0+/, '') : fraction).length;
        return [whole, fraction.padEnd(fraction.length + Math.max(0, options.significant[0] - Math.max(seen, 1)), '0')];
      }
      if (options.notation === 'compact' && !options.rounded) {
        // Two digits, and no fraction from there on.
        const places = Math.max(0, 2 - Math.max(value.point, 1));
        return write(round(value, value.point <= 0 ? 1 - value.point + 1 : places), 0, 100);
      }
      const { minimumFractionDigits: least, maximumFractionDigits: most } = options;
      return write(round(value, most), least, most);
    }
    #group(whole) {
      const { grouping, notation } = this.#options;
      if (!grouping || (notation === 'compact' && whole.length < 5)) return whole;
      return whole.replace(/\B(?=(\d{3})+$)/g, ',');
    }
    #write(given) {
      const options = this.#options;
      const value = typeof given === 'bigint' ? given : Number(given);
      const negative = value < 0 || Object.is(value, -0);
      let size = negative && typeof value === 'bigint' ? -value : typeof value === 'bigint' ? value : Math.abs(value);
      let end = '';
      if (options.notation === 'compact' && typeof size === 'number') {
        // What rounds up to the next scale is written in it.
        const scale = SCALES.find(([from]) => size >= from || Number(size.toPrecision(3)) >= from);
        if (scale) {
          size /= scale[0];
          end = options.compactDisplay === 'long' ? ` ${scale[2]}` : scale[1];
        }
      }
      let body;
      if (Number.isNaN(value)) body = 'NaN';
      else if (size === Infinity) body = '∞';
      else {
        const scaled = options.style === 'percent' ? { ...decimal(size) } : null;
        if (scaled) scaled.point += scaled.digits === '0' ? 0 : 2;
        const [whole, fraction] = scaled
          ? write(round(scaled, options.maximumFractionDigits), options.minimumFractionDigits, options.maximumFractionDigits)
          : this.#digits(size);
        body = this.#group(whole.padStart(options.minimumIntegerDigits, '0')) + (fraction ? `.${fraction}` : '');
      }
      body += end;
      if (options.style === 'percent') body += '%';
      if (options.style === 'unit') body += ` ${options.unit}`;
      if (options.style === 'currency') body = this.#money(body);
      return this.#sign(negative, /[1-9∞]/.test(body)) + body;
    }
    #money(body) {
      const { currency, currencyDisplay } = this.#options;
      if (currencyDisplay === 'code') return `${currency}\u00A0${body}`;
      if (currencyDisplay === 'name') return `${body} ${currency}`;
      const symbol = currencyDisplay === 'narrowSymbol' ? (SYMBOLS[currency] ?? currency).replace(/^[A-Z]+(?=\W)/, '') : (SYMBOLS[currency] ?? currency);
      return /[A-Za-z]$/.test(symbol) ? `${symbol}\u00A0${body}` : symbol + body;
    }
    #sign(negative, nonzero) {
      switch (this.#options.signDisplay) {
        case 'never': return '';
        case 'always': return negative ? '-' : '+';
        case 'exceptZero': return nonzero ? (negative ? '-' : '+') : '';
        case 'negative': return negative && nonzero ? '-' : '';
        default: return negative ? '-' : '';
      }
    }
    resolvedOptions() {
      const { significant, rounded, grouping, ...rest } = this.#options;
      const known = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
      return { locale: 'en-US', numberingSystem: 'latn', ...known, useGrouping: grouping ? 'auto' : false };
    }
    static supportedLocalesOf(locales) {
      return DateTimeFormat.supportedLocalesOf(locales);
    }
  }

  // Both may be called without `new`.
  const callable = (type) =>
    new Proxy(type, { apply: (target, _, values) => new target(...values) });
  const Intl = { DateTimeFormat: callable(DateTimeFormat), NumberFormat: callable(NumberFormat) };
  Object.defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true });
  Intl.getCanonicalLocales = (locales) => canonical(locales);
  return { Intl, formatDate };
});
