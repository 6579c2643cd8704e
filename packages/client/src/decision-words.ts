/** Words that are a yes and words that are a no, in one language. Case, accents and punctuation do not matter. */
export interface DecisionWords {
  readonly yes: readonly string[];
  readonly no: readonly string[];
  /** Words that decide nothing and may stand beside a yes or a no, such as "please". */
  readonly polite?: readonly string[];
}

/** Decisions by language. Pass a table of your own for other languages or words. */
export const DECISION_WORDS: Readonly<Record<string, DecisionWords>> = {
  it: {
    yes: [
      'sì',
      'ok',
      'okay',
      'va bene',
      'certo',
      'certamente',
      "d'accordo",
      'volentieri',
      'fallo',
      'procedi',
      'esatto',
    ],
    no: ['no', 'non farlo', 'non voglio', 'non ora', 'annulla', 'basta', 'lascia stare', 'meglio di no'],
    polite: ['grazie', 'per favore', 'pure'],
  },
  en: {
    yes: [
      'yes',
      'yeah',
      'yep',
      'ok',
      'okay',
      'sure',
      'of course',
      'all right',
      'alright',
      'go ahead',
      'do it',
      'agreed',
    ],
    no: [
      'no',
      'nope',
      "don't",
      "don't do it",
      'do not',
      'do not do it',
      'not now',
      'cancel',
      'stop',
      'never mind',
    ],
    polite: ['please', 'thanks', 'thank you'],
  },
  de: {
    yes: [
      'ja',
      'jawohl',
      'ok',
      'okay',
      'gern',
      'gerne',
      'klar',
      'natürlich',
      'in Ordnung',
      'einverstanden',
      'mach das',
      'mach es',
    ],
    no: [
      'nein',
      'nö',
      'nee',
      'nicht jetzt',
      'mach das nicht',
      'mach es nicht',
      'abbrechen',
      'lieber nicht',
      'lass es',
    ],
    polite: ['bitte', 'danke'],
  },
  fr: {
    yes: ['oui', 'ouais', 'ok', 'okay', "d'accord", 'bien sûr', 'volontiers', 'vas-y', 'allez-y', 'entendu'],
    no: [
      'non',
      'pas maintenant',
      'ne le fais pas',
      'ne le faites pas',
      'annule',
      'annuler',
      'surtout pas',
      'laisse tomber',
    ],
    polite: ['merci', "s'il te plaît", "s'il vous plaît"],
  },
  es: {
    yes: [
      'sí',
      'ok',
      'okay',
      'vale',
      'claro',
      'claro que sí',
      'por supuesto',
      'de acuerdo',
      'adelante',
      'hazlo',
    ],
    no: ['no', 'claro que no', 'no lo hagas', 'ahora no', 'cancela', 'cancelar', 'mejor no', 'déjalo'],
    polite: ['gracias', 'por favor'],
  },
  pt: {
    yes: ['sim', 'ok', 'okay', 'claro', 'claro que sim', 'com certeza', 'está bem', 'pode ser', 'de acordo'],
    no: ['não', 'agora não', 'claro que não', 'cancela', 'cancelar', 'melhor não', 'deixa'],
    polite: ['obrigado', 'obrigada', 'por favor'],
  },
};

/** How an utterance is read. */
export interface DecisionOptions {
  /** The language, such as `it` or `it-IT`; every language of the table by default. One without words decides nothing. */
  readonly language?: string;
  /** The table, by language; `DECISION_WORDS` by default. */
  readonly words?: Readonly<Record<string, DecisionWords>>;
}

/**
 * Whether an utterance is a yes (true) or a no (false). Undefined unless all of it is one: "yes, but later" and "yes… no"
 * decide nothing, since a decision that was not meant is worse than a second question.
 */
export function readDecision(text: string, options: DecisionOptions = {}): boolean | undefined {
  const { language, words = DECISION_WORDS } = options;
  const said = fold(text);
  if (said.length === 0 || said.length > WORDS_MAX) return undefined;
  const decisions = tablesOf(words, language).map((table) => readWith(said, table));
  const [decision, ...others] = new Set(decisions.filter((one) => one !== undefined));
  return others.length === 0 ? decision : undefined;
}

/** Longest utterance that is read as a decision, in words. */
const WORDS_MAX = 12;

function tablesOf(words: Readonly<Record<string, DecisionWords>>, language?: string): DecisionWords[] {
  if (language === undefined) return Object.values(words);
  const [primary = ''] = language.toLowerCase().split(/[-_]/);
  const table = Object.hasOwn(words, language) ? words[language] : undefined;
  const found = table ?? (Object.hasOwn(words, primary) ? words[primary] : undefined);
  return found === undefined ? [] : [found];
}

/** Takes the longest phrase each time: "no lo hagas" is one, and so is "claro que no". */
function readWith(said: readonly string[], { yes, no, polite = [] }: DecisionWords): boolean | undefined {
  const phrases = [
    ...yes.map((phrase) => ({ phrase: fold(phrase), decides: true })),
    ...no.map((phrase) => ({ phrase: fold(phrase), decides: false })),
    ...polite.map((phrase) => ({ phrase: fold(phrase), decides: undefined })),
  ]
    .filter(({ phrase }) => phrase.length > 0)
    .sort((one, other) => other.phrase.length - one.phrase.length);
  const decisions = new Set<boolean>();
  for (let at = 0; at < said.length; ) {
    const next = phrases.find(({ phrase }) => phrase.every((word, index) => said[at + index] === word));
    if (next === undefined) return undefined;
    if (next.decides !== undefined) decisions.add(next.decides);
    at += next.phrase.length;
  }
  const [decision, ...others] = decisions;
  return others.length === 0 ? decision : undefined;
}

/** The words of a text in lower case, without accents, apostrophes and punctuation. */
function fold(text: string): string[] {
  return text
    .normalize('NFD')
    .replace(/[\p{M}'’`]/gu, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}
