/**
 * The things the shop's customers talk about: order numbers, products, towns, names, and the e-mail addresses and card
 * numbers they add. Each belongs to exactly one split by the hash of its name, so training, validation and golden tasks
 * cannot share one. Products and towns are made of two parts that every split knows, so a small model meets new combinations
 * rather than new letters. Addresses are under example.com, card numbers are invented and pass the Luhn check, so that
 * whoever must find them can be tested.
 */
import { hash, type Random, random, type Split } from 'pawl';

export type Kind = 'order' | 'product' | 'town' | 'name' | 'email' | 'card';

/** 14 of 20 train, 2 validation, 4 golden. */
export function splitOf(kind: Kind, value: string): Split {
  const slot = hash(`${kind}:${value}`) % 20;
  return slot < 14 ? 'train' : slot < 16 ? 'validation' : 'golden';
}

const pairs = (first: readonly string[], second: readonly string[], glue: string): string[] =>
  first.flatMap((a) => second.map((b) => a + glue + b));

const materials = [
  'oak',
  'steel',
  'glass',
  'red',
  'blue',
  'white',
  'black',
  'mini',
  'grand',
  'soft',
  'smart',
  'classic',
];
const things = [
  'lamp',
  'chair',
  'table',
  'kettle',
  'clock',
  'bag',
  'mug',
  'radio',
  'fan',
  'rug',
  'sofa',
  'pan',
  'bike',
  'desk',
];
const heads = [
  'Ash',
  'Oak',
  'Mill',
  'Stone',
  'Green',
  'Wood',
  'Lake',
  'North',
  'West',
  'Fair',
  'Bright',
  'Clay',
  'Spring',
  'King',
];
const tails = ['ford', 'ton', 'field', 'bury', 'port', 'dale', 'wick', 'ham', 'bridge', 'mouth'];
const names = [
  'Ada', 'Ben', 'Cara', 'Dan', 'Eva', 'Finn', 'Gina', 'Hugo', 'Ida', 'Jon', 'Kim', 'Leo', 'Mia', 'Nils', 'Olga', 'Paul',
  'Rosa', 'Sam', 'Tara', 'Udo', 'Vera', 'Will', 'Yara', 'Zoe', 'Anna', 'Bela', 'Carl', 'Dora', 'Emil', 'Fay', 'Gus', 'Hana',
  'Ivan', 'Jule', 'Karl', 'Lena', 'Max', 'Nora', 'Otto', 'Pia', 'Rick', 'Sue', 'Tim', 'Ute', 'Vic', 'Wanda', 'Xena', 'Yuri',
]; // biome-ignore format: a list

const tags = Array.from({ length: 40 }, (_, i) => `.u${1000 + 25 * i + 7}@example.com`);

/** In groups of four, as printed on the card. */
function cardNumber(r: Random): string {
  const digits = [4, ...Array.from({ length: 14 }, () => r.integer(0, 9))];
  const sum = digits.reduce(
    (total, digit, i) => total + (i % 2 === 0 ? (digit * 2 > 9 ? digit * 2 - 9 : digit * 2) : digit),
    0,
  );
  const whole = [...digits, (10 - (sum % 10)) % 10].join('');
  return whole.replace(/(\d{4})(?=\d)/g, '$1 ');
}

const all: Readonly<Record<Kind, readonly string[]>> = {
  order: Array.from({ length: 9000 }, (_, i) => String(1000 + i)),
  product: pairs(materials, things, ' '),
  town: pairs(heads, tails, ''),
  name: names,
  email: pairs(
    names.map((name) => name.toLowerCase()),
    tags,
    '',
  ),
  card: Array.from({ length: 2000 }, (_, i) => cardNumber(random('card', i))),
};

const bySplit = new Map<string, readonly string[]>();

/** Everything of a kind that belongs to a split, in a fixed mixed order. */
export function entities(kind: Kind, split: Split): readonly string[] {
  const key = `${kind}/${split}`;
  let list = bySplit.get(key);
  if (list === undefined) {
    list = random('entities', kind).shuffle(all[kind].filter((value) => splitOf(kind, value) === split));
    bySplit.set(key, list);
  }
  return list;
}
