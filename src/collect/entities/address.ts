/**
 * Postal addresses: a line with a street's word in it (Street, -straße, rue, út …) or with a house number before and behind capitalised
 * words, Korean road addresses, suites, box numbers and postal codes by name. Inside a sentence an address is one with the
 * city and country that follow; in a block of lines each line stands for itself, so that a name above it is not swallowed.
 */
import type { Span } from '../redact/redactor.ts';

const suffix =
  '(?:Street|St\\.|Avenue|Ave\\.?|Road|Rd\\.?|Lane|Ln\\.?|Drive|Boulevard|Blvd\\.?|Court|Way|Place|Square|Terrace|Parkway|Circle|Highway|Hwy)(?![\\p{L}])';
const joined =
  '[\\p{L}-]{2,30}(?:stra(?:ss|ß)e|str\\.|weg|gasse|platz|allee|laan|straat|vej|vei|gade|gata|gatan|vägen|veien|vegen|gränd|katu|kuja|tie|polku|damm|dijk|plein|singel|stræde|parken|svingen|bakken|gatve|iela)(?![\\p{L}])';
const prefix =
  '(?:Rue|Via|Viale|Vicolo|Calle|Avenida|Av\\.|Rua|Travessa|Estrada|Largo|Plaza|Piazza|Corso|Ul\\.|Ulica|Chaussée|Avenue|Boulevard|Impasse|Cité|Vila|Quai|Place|Allée|Carrer|Camino|C\\/|Postbox|Post Box|P\\.?O\\.? ?Box)';
const behind = '(?:út|utca|tér|u\\.|ulice|cesta|ulica|náměstí|trg|sokak|caddesi|Baan|Steenweg|Vej|Alle)(?![\\p{L}])';
const name = "[\\p{L}][\\p{L}\\p{M}.'’-]{0,30}";
const number = '\\d{1,5}[A-Za-z]?(?:[-/]\\d{1,4})?';
/** Some write the flat or the box before the house. */
const before = `${number},? (?:\\d{1,5} )?`;

/** One of these within a few words, with a number before or behind. Words are told apart by a space, so that no text can be read in many ways. */
const marked = `(?:${suffix}|${joined}|${behind})`;
const alone = '(?<![\\p{L}\\p{N}])';
const noMore = '(?![\\p{L}\\p{N}])';
const street = new RegExp(
  [
    `${alone}${before}(?:${name} ){0,4}?${marked}(?: ${number}\\.?${noMore})?`,
    `${alone}(?:${before})?(?:${name} ){0,1}(?:${joined}|${name} ${behind}) ${number}\\.?${noMore}`,
    `${alone}(?:${before})?${prefix} ${name}(?: ${name}){0,4}(?:,? ${number}${noMore})?`,
  ].join('|'),
  'giu',
);
/** 98 Grote Baan 477: capitals between two numbers. */
const numbered =
  /(?<![\p{L}\p{N}.:/-])\d{1,4}(?: \d{1,4})?(?: \p{Lu}[\p{L}\p{M}.'’-]{1,30}){1,4} \d{1,4}[A-Za-z]?(?![\p{L}\p{N}:%-])/gu;
const part = `(?:${name}|${number})`;
const corner = new RegExp(`${alone}the corner of ${part}(?: ${part}){0,5}? and ${part}(?: ${part}){0,4}`, 'giu');
const unit = /(?<![\p{L}])(?:suite|apt\.?|apartment|unit|floor)\s{1,2}#?\d{1,5}[A-Za-z]?(?![\p{L}\p{N}])/giu;
const code =
  /(?:zip(?:\s?code)?|post(?:al)?\s?code|우편번호|plz)(?:\s(?:is|no|number))?[\s:]{1,3}(\d{4,6}(?:-\d{4})?)/giu;
const korean =
  /(?:서울|부산|대구|인천|광주|대전|울산|세종|경기|강원|충청[남북]|전라[남북]|경상[남북]|충[남북]|전[남북]|경[남북]|제주)[가-힣]{0,6}(?:\s?[가-힣]{1,6}(?:시|군|구)){0,2}(?:\s?[가-힣]{1,6}(?:읍|면|동|가))?(?:\s?[가-힣0-9]{1,10}(?:로|길)){1,2}\s?\d{1,4}(?:-\d{1,4})?(?:번지)?(?:\s?,?\s?\d{1,4}동)?(?:\s?\d{1,4}호)?/gu;

/** What may follow an address in a sentence: the flat, the city, the country and its code. */
const more =
  /(?:,?[ \t]{0,3}\n[ \t>]{0,3}|,[ \t]{1,2}|[ \t](?=(?:suite|apt|unit)))(?:(?:suite|apt\.?|apartment|unit|floor)\s\d{1,5}|\p{L}[\p{L}\p{M}.'’-]{1,30}(?: \p{L}[\p{L}\p{M}.'’-]{0,30}){0,4}(?: \d{4,6})?|\d{4,6}(?:-\d{4})?)(?=\s*(?:[\n,.?!;]|$|for\b|in\b|and\b|last\b))/iuy;
const MOST_PARTS = 6;
const lineStart = /(?:^|\n)[ \t>?*-]{0,6}$/;

export function addressesIn(text: string): Span[] {
  const spans: Span[] = [];
  const add = (start: number, end: number, confidence: number, kind = 'address') =>
    void spans.push({ start, end, kind, confidence, isContextual: true, isGuess: true });
  for (const { index, 0: found } of text.matchAll(corner)) add(index, index + found.trimEnd().length, 0.7);
  for (const { index, 0: found } of [...text.matchAll(street), ...text.matchAll(numbered)]) {
    const end = index + found.trimEnd().length;
    const isBlock = lineStart.test(text.slice(Math.max(0, index - 8), index));
    if (isBlock) {
      add(index, end, 0.7);
      readBlock(text, end, add);
    } else add(index, extended(text, end), 0.7);
  }
  for (const { index, 0: found } of text.matchAll(unit)) add(index, index + found.length, 0.6);
  for (const { index, 0: found, 1: value } of text.matchAll(code))
    add(index + found.length - value!.length, index + found.length, 0.7);
  for (const { index, 0: found } of text.matchAll(korean)) add(index, index + found.length, 0.8);
  return spans;
}

/** With all that follows, unless that is a single word behind a comma, which is a place by itself. */
function extended(text: string, from: number): number {
  let end = from;
  let parts = 0;
  for (; parts < MOST_PARTS; parts++) {
    more.lastIndex = end;
    const part = more.exec(text);
    if (part === null) break;
    end += part[0].trimEnd().length;
  }
  return parts === 1 && text[from] === ',' ? from : end;
}

const blockLine =
  /[ \t]{0,3}\n{1,2}[ \t>?]{0,5}(?:(?:suite|apt\.?|apartment|unit|floor) \d{1,5}|(\p{L}[\p{L}\p{M}'’-]{0,30}(?: \p{L}[\p{L}\p{M}.'’-]{0,30}){0,5}))(?: (\d{4,6}))?(?=[ \t]*(?:\n|$))/iuy;
const BLOCK_LINES = 4;

/** The lines under a street's: a flat, a city, a country with its code. */
function readBlock(
  text: string,
  from: number,
  add: (start: number, end: number, confidence: number, kind?: string) => void,
): void {
  let at = from;
  for (let i = 0; i < BLOCK_LINES; i++) {
    blockLine.lastIndex = at;
    const line = blockLine.exec(text);
    if (line === null) return;
    at += line[0].length;
    const [, place, postal] = line;
    const codeStart = at - (postal?.length ?? 0);
    if (postal !== undefined) add(codeStart, at, 0.7);
    if (place === undefined) continue;
    const end = postal === undefined ? at : codeStart - 1;
    add(end - place.length, end, 0.6, 'location');
  }
}
