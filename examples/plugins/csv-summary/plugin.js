import { definePlugin } from '@toolgate/plugin';

/** The rows of a CSV text (RFC 4180): cells in quotes may hold delimiters, line ends and doubled quotes. */
function rowsOf(text, delimiter) {
  const rows = [];
  let row = [];
  let cell = '';
  let quoted = false;
  const endCell = () => {
    row.push(cell);
    cell = '';
  };
  const endRow = () => {
    endCell();
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (quoted && letter === '"' && text[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else if (letter === '"' && (quoted || cell === '')) quoted = !quoted;
    else if (!quoted && letter === delimiter) endCell();
    else if (!quoted && letter === '\n') endRow();
    else if (quoted || letter !== '\r') cell += letter;
  }
  if (quoted) throw new Error('a quote is never closed');
  endRow();
  return rows;
}

/** The delimiter that the first line has most of. */
function delimiterOf(text) {
  const [line] = text.split('\n', 1);
  const counted = [',', ';', '\t', '|'].map((delimiter) => [line.split(delimiter).length, delimiter]);
  return counted.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

function columnSummary(name, cells) {
  const present = cells.map((cell) => cell.trim()).filter((cell) => cell !== '');
  const distinct = new Set(present);
  const summary = { name, missing: cells.length - present.length, distinct: distinct.size };
  const numbers = present.map(Number);
  if (present.length > 0 && numbers.every(Number.isFinite)) {
    const sum = numbers.reduce((total, number) => total + number, 0);
    const sorted = numbers.toSorted((a, b) => a - b);
    const half = Math.floor(sorted.length / 2);
    const median = sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    const mean = Number((sum / numbers.length).toPrecision(12));
    return { ...summary, type: 'number', min: sorted[0], max: sorted.at(-1), mean, median, sum };
  }
  const isDate = (cell) => /^\d{4}-\d\d-\d\d/.test(cell) && !Number.isNaN(Date.parse(cell));
  if (present.length > 0 && present.every(isDate)) {
    const sorted = present.toSorted();
    return { ...summary, type: 'date', min: sorted[0], max: sorted.at(-1) };
  }
  return { ...summary, type: 'text', examples: [...distinct].slice(0, 3) };
}

export default definePlugin({
  id: 'csv-summary',
  name: 'CSV summary',
  version: '1.0.0',
  description: 'Says what is in a CSV text: columns, types, ranges, missing values.',
  engine: '>=0.1',
  helpers: { rowsOf, delimiterOf, columnSummary },
  tools: [
    {
      name: 'summarize_csv',
      description:
        'Summarizes a CSV text whose first line has the column names: rows, and for each column its type, ' +
        'missing and distinct values, and minimum, maximum, mean, median and sum of numbers.',
      parameters: {
        type: 'object',
        properties: {
          csv: { type: 'string', maxLength: 200000 },
          delimiter: { type: 'string', minLength: 1, maxLength: 1, description: 'Found out by default.' },
        },
        required: ['csv'],
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ csv, delimiter }) => {
        const [header, ...rows] = rowsOf(csv.replace(/^\uFEFF/, ''), delimiter ?? delimiterOf(csv));
        if (header === undefined) throw new Error('the text has no line with column names');
        const columns = header.map((name, index) =>
          columnSummary(
            name.trim(),
            rows.map((row) => row[index] ?? ''),
          ),
        );
        const uneven = rows.filter((row) => row.length !== header.length).length;
        return { rows: rows.length, unevenRows: uneven, columns };
      },
    },
  ],
});
