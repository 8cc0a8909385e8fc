/**
 * What stands where something personal stood: its kind and a number, `[EMAIL_1]`, the same for the same value in all of a
 * conversation and another for another, so that a reader and a model can still tell two people apart. Numbers follow the order in
 * which values are met; of a value only a keyed hash is remembered.
 *
 * mask    `[EMAIL_1]`
 * hash    `[EMAIL_h7k2…]`, the same in every conversation of the installation: whoever has the secret can link them
 * never   `[KR_RRN]`: not even whether two are the same is kept
 * drop    nothing of the turn is kept
 */
import { createHmac, hash } from 'node:crypto';
import { normalForm } from '../normal-form.ts';

export const policies = ['mask', 'hash', 'drop', 'never'] as const;
export type Policy = (typeof policies)[number];

/** Kinds of a conversation's values, and of each the numbers by hash. */
export type Numbers = Map<string, Map<string, number>>;

/** Its kind is dropped by the agent's policy: nothing of what holds it may be stored. */
export class Dropped extends Error {
  override readonly name = 'Dropped';
  readonly kind: string;
  constructor(kind: string) {
    super(`It holds ${kind}, which the policy drops.`);
    this.kind = kind;
  }
}

const maskNames = new Map<string, string>();
/** There are as many kinds as the built-in and the agents' own recognizers find. */
export function maskName(kind: string): string {
  let name = maskNames.get(kind);
  if (name === undefined) {
    name = kind.toUpperCase().replaceAll('-', '_');
    maskNames.set(kind, name);
  }
  return name;
}

/** Of printable ASCII without spaces, which most values are, case alone has more than one form. */
const isPlain = /^[!-~]+$/;

/** One form for what people write in several: case, width, and what stands between digits. */
export function plainValue(value: string): string {
  const plain = isPlain.test(value) ? value.toLowerCase() : normalForm(value).toLowerCase().replace(/\s+/g, ' ').trim();
  if (plain.includes('@')) return plain;
  const digits = plain.replace(/[^0-9]/g, '').length;
  return digits >= 6 && digits * 2 >= plain.length ? plain.replace(/[^\p{L}\p{N}]/gu, '') : plain;
}

/** What `hash` writes down is an HMAC. What only tells values of a conversation apart is a keyed hash too, for a quarter of the time. */
export const digestOf = (kind: string, value: string, policy: Policy, key: string): string => {
  const said = `${kind} ${plainValue(value)}`;
  const digest =
    policy === 'hash'
      ? createHmac('sha256', key).update(said).digest('base64url')
      : hash('sha256', `${key}\0${said}`, 'base64url');
  return digest.slice(0, 22);
};

export function placeholderOf(kind: string, digest: string, policy: Policy, numbers: Numbers): string {
  switch (policy) {
    case 'drop':
      throw new Dropped(kind);
    case 'never':
      return `[${maskName(kind)}]`;
    case 'hash':
      return `[${maskName(kind)}_h${digest
        .toLowerCase()
        .replace(/[^a-z0-9]/g, '0')
        .slice(0, 12)}]`;
    case 'mask':
      return `[${maskName(kind)}_${numberOf(kind, digest, numbers)}]`;
    default:
      return policy satisfies never;
  }
}

function numberOf(kind: string, digest: string, numbers: Numbers): number {
  let known = numbers.get(kind);
  if (known === undefined) {
    known = new Map();
    numbers.set(kind, known);
  }
  let number = known.get(digest);
  if (number === undefined) {
    number = known.size + 1;
    known.set(digest, number);
  }
  return number;
}
