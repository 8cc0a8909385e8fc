/**
 * Puts invented values where redaction left masks, so that a model learns from the kind of text it will serve: users write
 * addresses and card numbers, never `[email]`. Pure, and only for training text in memory; datasets keep their masks.
 *
 * A value follows from the dataset's seed, the conversation and the mask. Inside a conversation the same mask is the same
 * value everywhere, tool arguments and results included; elsewhere it is another. None can be a real one: addresses are under
 * the domains reserved for examples (RFC 2606), card numbers begin like those of payment sandboxes. Redacting what was filled
 * gives the masked text again. A kind that is not in the table stays a mask.
 */
import { createHash } from 'node:crypto';

/** Numbers in [0, below), one after the other; a value needs a dozen. */
type Draw = (below: number) => number;

const invented: Readonly<Record<string, (draw: Draw) => string>> = {
  email: (draw) => `${word(draw)}.${word(draw)}@example.${one(['com', 'org', 'net'], draw)}`,
  card: (draw) => {
    const digits = `${one(['400000', '424242', '555555'], draw)}${many(9, draw, '0123456789')}`;
    return `${digits}${luhnDigit(digits)}`.replace(/(\d{4})(?=\d)/g, '$1 ');
  },
  secret: (draw) => `sk-${many(32, draw, 'abcdefghijklmnopqrstuvwxyz0123456789')}`,
};

/** `[email]`; as keys of one object, further ones are `[email] 2`, `[email] 3` (collect/redact). Also in JSON within JSON. */
const masks = /\[([a-z][a-z-]{1,30})\](?: (\d{1,9})(?=\\*"\s*:))?/g;

/** Any JSON value. Done on its text at once, which no invented value can break: keys, ids and nested JSON follow along. */
export function fill<T>(value: T, seed: number, conversation: string): T {
  const text = JSON.stringify(value).replace(masks, (mask, kind: string, number: string | undefined) => {
    const invent = Object.hasOwn(invented, kind) ? invented[kind] : undefined;
    return invent === undefined ? mask : invent(drawing([seed, conversation, kind, number ?? '1']));
  });
  return JSON.parse(text);
}

function drawing(from: readonly (string | number)[]): Draw {
  let block = 0;
  let bytes = Buffer.alloc(0);
  return (below) => {
    if (bytes.length < 4)
      bytes = createHash('sha256')
        .update(JSON.stringify([...from, block++]))
        .digest();
    const drawn = bytes.readUInt32BE(0) % below;
    bytes = bytes.subarray(4);
    return drawn;
  };
}

const one = (list: readonly string[] | string, draw: Draw): string => list[draw(list.length)]!;
const many = (count: number, draw: Draw, from: readonly string[] | string): string =>
  Array.from({ length: count }, () => one(from, draw)).join('');
/** Two syllables, as names have. */
const word = (draw: Draw): string =>
  Array.from({ length: 2 }, () => `${one('bdfghjklmnprstvz', draw)}${one('aeiou', draw)}${one('lnrst', draw)}`).join(
    '',
  );

/** The last digit of a card number, which makes the sum right. */
function luhnDigit(digits: string): number {
  const sum = [...digits].reverse().reduce((total, text, i) => {
    const doubled = i % 2 === 0 ? Number(text) * 2 : Number(text);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return (10 - (sum % 10)) % 10;
}
