import { expect, test } from 'vitest';
import { DECISION_WORDS, readDecision } from './decision-words.js';

test.each([
  ['it', 'sì', true],
  ['it-IT', 'Si!', true],
  ['it', 'SÌ, grazie.', true],
  ['it', 'sì sì, va bene', true],
  ['it', 'd’accordo', true],
  ['it', 'No, grazie', false],
  ['it', 'no, non farlo', false],
  ['en-GB', 'Yes, please', true],
  ['en', 'go ahead', true],
  ['en', "Don't do it", false],
  ['en', 'Do it', true],
  ['de', 'Ja, gerne', true],
  ['de', 'Nö', false],
  ['de', 'Mach das nicht', false],
  ['fr-FR', 'Oui, vas-y', true],
  ['fr', 'Non merci', false],
  ['es', 'Sí, por favor', true],
  ['es', 'Claro que no', false],
  ['pt-BR', 'Não, obrigada', false],
])('%s: "%s" is %s', (language, said, decision) => {
  expect(readDecision(said, { language })).toBe(decision);
  // Composed or not, an accent is the same.
  expect(readDecision(said.normalize('NFD'), { language })).toBe(decision);
});

test.each([
  ['it', ''],
  ['it', '…'],
  ['it', 'sì, ma più tardi'],
  ['it', 'sì no'],
  ['it', 'grazie'],
  ['it', 'crea un foglio'],
  ['it', 'sicuro che sì'],
  ['en', 'yes and delete everything'],
  ['en', 'no problem'],
  ['de', 'yes'],
  // Polish "no" is a yes of sorts: a language without words decides nothing.
  ['pl', 'no'],
  ['en', 'yes '.repeat(13)],
  ['constructor', 'yes'],
])('%s: "%s" decides nothing', (language, said) => {
  expect(readDecision(said, { language })).toBeUndefined();
});

test('without a language every language of the table is understood', () => {
  expect(['sì', 'ja', 'oui', 'ok'].map((said) => readDecision(said))).toEqual([true, true, true, true]);
  expect(['no', 'nein', 'não'].map((said) => readDecision(said))).toEqual([false, false, false]);
});

test('the table can be replaced, and words that languages disagree on decide nothing', () => {
  const words = { ...DECISION_WORDS, pl: { yes: ['tak', 'no'], no: ['nie'] } };
  expect(readDecision('Tak', { words, language: 'pl' })).toBe(true);
  expect(readDecision('no', { words, language: 'pl' })).toBe(true);
  expect(readDecision('no', { words })).toBeUndefined();
  expect(readDecision('roger', { words: { en: { yes: ['roger'], no: [] } }, language: 'en' })).toBe(true);
});

test('no phrase of a language is a yes and a no', () => {
  for (const [language, { yes, no, polite = [] }] of Object.entries(DECISION_WORDS)) {
    for (const said of yes) expect([language, said, readDecision(said, { language })]).toContain(true);
    for (const said of no) expect([language, said, readDecision(said, { language })]).toContain(false);
    for (const said of polite) expect(readDecision(said, { language })).toBeUndefined();
  }
});
