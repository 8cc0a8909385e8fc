/**
 * Invented people for the canary test, each with one value of every kind, English and Korean, that are right by their own checksums.
 * `raw` is what may be found nowhere: the value, and its digits alone.
 */
import { createHash } from 'node:crypto';

export type Canary = { readonly kind: string; readonly text: string; readonly raw: readonly string[] };

const drawing = (seed: string) => {
  let n = 0;
  return (below: number): number => createHash('sha256').update(`${seed} ${n++}`).digest().readUInt32BE(0) % below;
};
const luhn = (digits: string): string => {
  const sum = [...digits].reverse().reduce((total, one, i) => {
    const value = i % 2 === 0 ? Number(one) * 2 : Number(one);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return digits + ((10 - (sum % 10)) % 10);
};
const iban = (account: string): string => {
  let rest = 0;
  for (const one of `${account}GB00`) {
    const value = Number.parseInt(one, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return `GB${String(98 - rest).padStart(2, '0')}${account}`;
};
const business = (nine: string): string => {
  const weights = [1, 3, 7, 1, 3, 7, 1, 3, 5];
  const sum = weights.reduce((total, w, i) => total + w * Number(nine[i]), Math.floor((Number(nine[8]) * 5) / 10));
  return nine + ((10 - (sum % 10)) % 10);
};

const firsts = ['Karen', 'Robert', 'Laura', 'Daniel', 'Emily', 'Marcus'];
const lasts = ['Quillfeather', 'Brandywick', 'Oxenholme', 'Thistlewood', 'Larkspurton', 'Wexcombe'];
const koreans = ['김철수', '이영희', '박민준', '최서연', '정하늘'];

/** The canaries of the person with this number. */
export function canariesOf(number: number): Canary[] {
  const draw = drawing(`person ${number}`);
  const digits = (count: number): string => Array.from({ length: count }, () => draw(10)).join('');
  const two = (from: number, below: number) => String(from + draw(below)).padStart(2, '0');
  const card = luhn(`4${digits(14)}`);
  const phone = `${2 + draw(8)}${digits(2)}-${2 + draw(8)}${digits(2)}-${digits(4)}`;
  const mobile = `010-${2 + draw(8)}${digits(3)}-${digits(4)}`;
  const birth = `${two(60, 39)}${two(1, 12)}${two(1, 28)}`;
  const resident = `${1 + draw(2)}${digits(6)}`;
  const brn = business(`${1 + draw(9)}${digits(8)}`);
  const ssn = [`${1 + draw(8)}${digits(2)}`.replace('666', '665'), two(1, 98), String(1000 + draw(8999))].join('-');
  const bank = iban(`WEST${digits(14)}`);
  const account = `${digits(3)}-${digits(4)}-${digits(6)}`;
  const secret = createHash('sha256').update(`secret ${number}`).digest('hex').slice(0, 32);
  const name = `${firsts[draw(firsts.length)]} ${lasts[draw(lasts.length)]}${'abcdefgh'[draw(8)]}${'aeiou'[draw(5)]}n`;
  const street = `${100 + draw(800)} ${lasts[draw(lasts.length)]}${'aeiou'[draw(5)]} Street`;
  const of = (kind: string, text: string, ...raw: string[]): Canary => ({ kind, text, raw });
  return [
    of('email', `mail me at zq${number}x${digits(4)}@canary-mail.com`, `@canary-mail.com`),
    of('phone', `call me at ${phone}`, phone, phone.replaceAll('-', '')),
    of('kr-phone', `제 번호는 ${mobile}입니다`, mobile, mobile.replaceAll('-', '')),
    of('card', `my card is ${card.replace(/(\d{4})(?=\d)/g, '$1 ')}`, card, card.replace(/(\d{4})(?=\d)/g, '$1 ')),
    of('iban', `IBAN ${bank}`, bank),
    // Not 127, which is everybody's own machine and is left as it is.
    of('ip', `from ${101 + draw(26)}.${draw(250)}.${draw(250)}.${100 + draw(150)}`),
    of('us-ssn', `my SSN is ${ssn}`, ssn, ssn.replaceAll('-', '')),
    of('kr-rrn', `주민등록번호 ${birth}-${resident}`, `${birth}-${resident}`, birth + resident, resident),
    of('kr-rrn-spaced', `주민번호는 ${birth} - ${resident}`, resident),
    of(
      'kr-brn',
      `사업자번호 ${brn.slice(0, 3)}-${brn.slice(3, 5)}-${brn.slice(5)}`,
      brn,
      `${brn.slice(3, 5)}-${brn.slice(5)}`,
    ),
    of('licence', `운전면허 ${two(11, 15)}-${two(10, 80)}-${digits(6)}-${two(10, 80)}`),
    of('account', `신한은행 계좌 ${account}`, account, account.replaceAll('-', '')),
    of('passport', `my passport is M${digits(8)}`),
    of('secret', `key sk-proj-${secret}`, secret),
    of('password', `my password is hunter${secret.slice(0, 8)}9`, `hunter${secret.slice(0, 8)}9`),
    of('url', `postgres://app:${secret.slice(4, 20)}q@db.internal/x`, secret.slice(4, 20)),
    of('person', `My name is ${name}.`, name),
    of('kr-person', `제 이름은 ${koreans[draw(koreans.length)]}입니다`, ...koreans),
    of('address', `I live at ${street}.`, street),
  ].map((one) => (one.raw.length > 0 ? one : { ...one, raw: [/[\dM][\d.-]{7,}$/.exec(one.text)![0]] }));
}
