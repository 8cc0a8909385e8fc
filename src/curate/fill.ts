/**
 * Puts invented values where redaction left masks, so that a model learns from the kind of text it will serve: users write
 * addresses and card numbers, never `[EMAIL_1]`. Pure, and only for training text in memory; datasets keep their masks.
 *
 * A value follows from the dataset's seed, the conversation and the mask. Inside a conversation the same mask is the same
 * value everywhere, tool arguments and results included; elsewhere it is another. None can be a real one: addresses are under
 * the domains reserved for examples (RFC 2606), card numbers begin like those of payment sandboxes, phones, IP and MAC
 * addresses are of ranges kept for fiction and documents, names are of syllables. Redacting what was filled gives the masked
 * text again, except for names and places, which it does not look for. A kind that is not in the table stays a mask: of a
 * resident number nobody can say which ones are nobody's.
 */
import { createHash } from 'node:crypto';

/** Numbers in [0, below), one after the other; a value needs a dozen. */
type Draw = (below: number) => number;

const digitsOf = '0123456789';

const invented: Readonly<Record<string, (draw: Draw) => string>> = {
  email: (draw) => `${word(draw)}.${word(draw)}@example.${one(['com', 'org', 'net'], draw)}`,
  card: (draw) => {
    const digits = `${one(['400000', '424242', '555555'], draw)}${many(9, draw, digitsOf)}`;
    return `${digits}${luhnDigit(digits)}`.replace(/(\d{4})(?=\d)/g, '$1 ');
  },
  phone: (draw) => `+1 ${one(['202', '303', '404', '505'], draw)}-555-01${many(2, draw, digitsOf)}`,
  ip: (draw) => `${one(['192.0.2', '198.51.100', '203.0.113'], draw)}.${1 + draw(254)}`,
  mac: (draw) => `00:00:5E:00:53:${many(2, draw, '0123456789ABCDEF')}`,
  iban: (draw) => {
    const account = `XXXX${many(14, draw, digitsOf)}`;
    return `GB${String(98 - mod97(`${account}GB00`)).padStart(2, '0')}${account}`;
  },
  'us-ssn': (draw) => `987-65-43${many(2, draw, digitsOf)}`,
  'uk-nino': (draw) => `QQ${many(6, draw, digitsOf)}${one('ABCD', draw)}`,
  person: (draw) => `${name(draw)} ${name(draw)}`,
  organization: (draw) => `${name(draw)} ${one(['Ltd', 'Inc', 'GmbH'], draw)}`,
  location: (draw) => `${name(draw)}${one(['ton', 'ville', 'burg'], draw)}`,
  address: (draw) => `${1 + draw(200)} ${name(draw)} Street`,
  birth: (draw) => `${1950 + draw(55)}-0${1 + draw(9)}-1${draw(10)}`,
  secret: (draw) => `sk-${many(32, draw, 'abcdefghijklmnopqrstuvwxyz0123456789')}`,
};

/**
 * `[EMAIL_1]`, `[EMAIL_h…]`, `[US_SSN]` (collect/redact/placeholder.ts). Rows from before placeholders had numbers hold `[email]`, and as
 * further keys of one object `[email] 2`. Also in JSON within JSON.
 */
const masks =
  /\[(?:([A-Z]{2,12}(?:_[A-Z]{2,12}){0,3})(?:_(\d{1,9}|h[a-z0-9]{12}))?|([a-z][a-z-]{1,30}))\](?: (\d{1,9})(?=\\*"\s*:))?/g;

/** Any JSON value. Done on its text at once, which no invented value can break: keys, ids and nested JSON follow along. */
export function fill<T>(value: T, seed: number, conversation: string): T {
  const text = JSON.stringify(value).replace(masks, (mask, numbered, number, older, further) => {
    const kind: string = older ?? numbered.toLowerCase().replaceAll('_', '-');
    const invent = Object.hasOwn(invented, kind) ? invented[kind] : undefined;
    const which = [number ?? '1', ...(further === undefined ? [] : [further])].join(' ');
    return invent === undefined
      ? mask
      : invent(drawing([seed, conversation, kind, older === undefined ? which : (further ?? '1')]));
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

const name = (draw: Draw): string => {
  const made = word(draw);
  return made[0]!.toUpperCase() + made.slice(1);
};

/** What is left of it as a number, letters counting from 10. */
function mod97(text: string): number {
  return [...text].reduce((rest, one) => {
    const value = Number.parseInt(one, 36);
    return (rest * (value > 9 ? 100 : 10) + value) % 97;
  }, 0);
}

/** The last digit of a card number, which makes the sum right. */
function luhnDigit(digits: string): number {
  const sum = [...digits].reverse().reduce((total, text, i) => {
    const doubled = i % 2 === 0 ? Number(text) * 2 : Number(text);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return (10 - (sum % 10)) % 10;
}
