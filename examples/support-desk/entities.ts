/**
 * The things the shop's customers talk about: order numbers, products, towns, names. Each belongs to exactly one split by
 * the hash of its name, so training, validation and golden tasks cannot share one. Products and towns are made of two parts
 * that every split knows, so a small model meets new combinations rather than new letters.
 */
import type { Split } from '../../src/simulate/environment.ts';
import { hash, random } from '../../src/simulate/random.ts';

export type Kind = 'order' | 'product' | 'town' | 'name';

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

const all: Readonly<Record<Kind, readonly string[]>> = {
  order: Array.from({ length: 9000 }, (_, i) => String(1000 + i)),
  product: pairs(materials, things, ' '),
  town: pairs(heads, tails, ''),
  name: names,
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
