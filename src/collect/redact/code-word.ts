/**
 * Numbers with letters in them: IBANs (mod 97 and the country's length), crypto addresses (their own checksums where they have
 * one), UK national insurance numbers and driving licences, and passports and licences of which only the words around tell.
 * Everything is asked about the word of letters and digits around one digit, so nothing is looked for twice.
 */
import { createHash } from 'node:crypto';
import type { About } from './context.ts';
import { digitAt, isLetter } from './digits.ts';

export type Found = {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly confidence: number;
};

const ibanLengths: Readonly<Record<string, number>> = Object.fromEntries(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 ' +
    'FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 ' +
    'MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 ' +
    'SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((one) => [one.slice(0, 2), Number(one.slice(2))]),
);

/** From two letters and two digits on, with single spaces inside; dashes are of ids. */
export function ibanAt(text: string, start: number): Found | null {
  const length = ibanLengths[text.slice(start, start + 2).toUpperCase()];
  if (length === undefined || digitAt(text, start + 2) < 0 || digitAt(text, start + 3) < 0) return null;
  let compact = '';
  let at = start;
  for (; compact.length < length; at++) {
    const code = text.charCodeAt(at);
    if (isAlnum(code)) compact += text[at];
    else if (!((code === 32 || code === 0xa0) && isAlnum(text.charCodeAt(at - 1)))) return null;
  }
  if (isAlnum(text.charCodeAt(at))) return null;
  return mod97(compact.toUpperCase()) === 1 ? { kind: 'iban', start, end: at, confidence: 1 } : null;
}

function mod97(iban: string): number {
  let rest = 0;
  for (const one of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(one, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest;
}

const isAlnum = (code: number): boolean => (isLetter(code) && code !== 95) || (code >= 48 && code <= 57);

const nino = /[A-CEGHJ-PQR-TW-Z][A-CEGHJ-NPQR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D](?![A-Za-z0-9_])/y;
const notNino = /^(?:BG|GB|KN|NK|NT|TN|ZZ)/;
const ukLicence = /^[A-Z9]{5}\d[0156]\d[0-3]\d{2}[A-Z9]{2}[A-Z0-9][A-Z]{2}$/;
const passport = /^(?:[A-Z]{1,2}\d{6,8}|[MSROD]\d{3}[A-Z]\d{4}|[CFGHJKLMNPRTVWXYZ0-9]{9,10})$/;
const licence = /^(?=(?:[A-Z]*\d){5})[A-Z0-9]{6,15}$/i;

const base58 = /^[13][1-9A-HJ-NP-Za-km-z]{25,34}$/;
const bech32 = /^bc1[02-9ac-hj-np-z]{11,71}$/;
const ether = /^0x[0-9a-fA-F]{40}$/;

/** What the word of letters and digits at [start, end) is by itself or by the words around. */
export function codeWordAt(text: string, start: number, end: number, about: () => About): Found | null {
  const length = end - start;
  if (length < 6 || length > 74) return null;
  const word = text.slice(start, end);
  const found = (kind: string, confidence: number): Found => ({ kind, start, end, confidence });
  if (length === 16 && ukLicence.test(word)) return found('licence', 0.9);
  if (length >= 26 && length <= 35 && base58.test(word)) return isBase58Check(word) ? found('crypto', 1) : null;
  if (length === 42 && ether.test(word)) return found('crypto', 0.9);
  if (word.startsWith('bc1') && bech32.test(word)) return isBech32(word) ? found('crypto', 1) : null;
  if (length > 15) return null;
  if (length <= 10 && passport.test(word) && about().labels.has('passport')) return found('passport', 0.8);
  if (licence.test(word) && about().labels.has('licence') && !about().isOther) return found('licence', 0.7);
  return null;
}

/** S123-4567-8901, as many US states write them: with a word beside it. */
const groupedLicence = /[A-Z]\d{2,4}(?:-\d{2,6}){2,4}(?:-\d)?(?![A-Za-z0-9_-])/y;

export function dashedLicenceAt(text: string, start: number, about: () => About): Found | null {
  groupedLicence.lastIndex = start;
  const found = groupedLicence.exec(text)?.[0];
  if (found === undefined || found.replace(/\D/g, '').length < 9) return null;
  if (!about().labels.has('licence') || about().isOther) return null;
  return { kind: 'licence', start, end: start + found.length, confidence: 0.7 };
}

/** `start`: of a word of letters and digits, or of the two letters before the digits. */
export function ninoAt(text: string, start: number): Found | null {
  if (start < 0 || isAlnum(text.charCodeAt(start - 1))) return null;
  nino.lastIndex = start;
  const match = nino.exec(text);
  if (match === null || notNino.test(match[0])) return null;
  return { kind: 'uk-nino', start, end: start + match[0].length, confidence: 0.9 };
}

const alphabet58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

function isBase58Check(word: string): boolean {
  let value = 0n;
  for (const one of word) value = value * 58n + BigInt(alphabet58.indexOf(one));
  if (value >= 1n << 200n) return false;
  const bytes = Buffer.from(value.toString(16).padStart(50, '0'), 'hex');
  const sha = (data: Uint8Array) => createHash('sha256').update(data).digest();
  return sha(sha(bytes.subarray(0, 21)))
    .subarray(0, 4)
    .equals(bytes.subarray(21));
}

const alphabet32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const generators = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

/** BIP 173 and 350. */
function isBech32(word: string): boolean {
  let check = 1;
  const step = (value: number) => {
    const top = check >>> 25;
    check = ((check & 0x1ffffff) << 5) ^ value;
    for (let i = 0; i < 5; i++) if ((top >> i) & 1) check ^= generators[i]!;
  };
  for (const value of [3, 3, 0, 2, 3]) step(value); // "bc", expanded
  for (const one of word.slice(3)) step(alphabet32.indexOf(one));
  return check === 1 || check === 0x2bc830a3;
}
