/**
 * Everything personal that has digits in it, in one pass: each run of digits is found once and shown to those who know what it may be
 * (network.ts, code-word.ts, national-id.ts, phone.ts), the surest first. Cards have a pass of their own (card.ts), because
 * their digits may be those of any script.
 *
 * Linear: a run is read once, each of its groups is tried with a bounded number of groups behind it, and no word or address
 * is read further than its longest form or more than once.
 */
import { codeWordAt, dashedLicenceAt, type Found, ibanAt, ninoAt } from './code-word.ts';
import { type About, aboutRun } from './context.ts';
import { digitRuns, type Group, isLetter, type Run } from './digits.ts';
import { type Hit, nationalIds } from './national-id.ts';
import { dashedMacAt, dottedMacAt, hexAddressAt, ipv4At } from './network.ts';
import { phoneAt } from './phone.ts';
import type { Redactor, Span } from './redactor.ts';

/** A resident number with its end hidden has six digits, and everything else more. */
const LEAST = 6;
const LONGEST_WORD = 74;
/** What looking at a run costs beside reading its characters, in characters. */
const RUN_WORK = 16;
const GROUP_WORK = 4;
/** Kinds of which the words around told, so that the value alone would not be known again. */
const byWords = new Set(['passport', 'licence', 'account']);

export const numbers: Redactor = {
  name: 'number',
  kinds: [
    ...['phone', 'iban', 'ip', 'mac', 'us-ssn', 'uk-nhs', 'uk-nino', 'de-tax-id', 'kr-rrn', 'kr-frn', 'kr-brn'],
    ...['passport', 'licence', 'account', 'crypto'],
  ],
  find(text, spend) {
    const spans: Span[] = [];
    let floor = 0; // where the run before ended
    let done = 0; // up to here words have been looked at
    for (const run of digitRuns(text, 1)) {
      if (run.end <= done) continue;
      const touched = touches(text, run);
      const isLong = run.size >= LEAST || run.groups.length >= 4; // 8.8.8.8
      if (!touched && !isLong) continue;
      spend?.(RUN_WORK + run.groups.length * GROUP_WORK);
      if (isAllDigitsId(text, run)) {
        done = run.end;
        continue;
      }
      let known: About | null = null;
      const from = floor;
      const about = (): About => {
        known ??= aboutRun(text, run.start, run.end, from);
        return known;
      };
      floor = run.end;
      let word: Found | null = null;
      if (touched) {
        const looked = lookAtWords(text, run, done, about);
        done = looked.end;
        word = looked.found;
        if (word !== null) spans.push(spanOf(word));
        if (done >= run.end && (looked.isId || word !== null) && run.groups.length === 1) continue;
        if (looked.isId) continue;
      }
      if (isLong && !isDate(run)) judge(text, run, word, about, spans);
    }
    return spans;
  },
};

const spanOf = ({ kind, start, end, confidence }: Found): Span => ({
  ...{ kind, start, end, confidence },
  isContextual: confidence < 0.8 || byWords.has(kind),
});

/** Whether a letter, a colon or a dash touches it: then it may be more than digits. */
function touches(text: string, { start, end, groups }: Run): boolean {
  const before = text.charCodeAt(start - 1);
  const behind = text.charCodeAt(end);
  if (isLetter(before) || isLetter(behind) || before === 58 || behind === 58) return true;
  if (behind === 45 || before === 45) return true;
  // QQ 12 34 56 C: two letters and a space before two digits.
  return before === 32 && groups[0]!.digits.length === 2 && isLetter(text.charCodeAt(start - 2));
}

/** A UUID whose first groups have no letter. */
function isAllDigitsId(text: string, { groups: [first] }: Run): boolean {
  if (first?.digits.length !== 8 || text[first.end] !== '-') return false;
  uuid.lastIndex = first.start;
  return uuid.test(text);
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9A-Za-z])/iy;
type Looked = { readonly found: Found | null; readonly isId: boolean; readonly end: number };

/** The words of letters and digits that the run's first and last group are parts of. No word is read twice. */
function lookAtWords(text: string, { groups }: Run, done: number, about: () => About): Looked {
  let end = done;
  for (const group of groups.length === 1 ? [groups[0]!] : [groups[0]!, groups[groups.length - 1]!]) {
    if (group.start < end) continue;
    let { start } = group;
    while (start > end && isWordCode(text.charCodeAt(start - 1))) start--;
    let stop = group.end;
    while (isWordCode(text.charCodeAt(stop))) stop++;
    if (stop - start === 8 && text[stop] === '-') {
      uuid.lastIndex = start;
      if (uuid.test(text)) return { found: null, isId: true, end: start + 36 };
    }
    const found = stop - start > LONGEST_WORD ? null : wordAt(text, start, stop, group, end, about);
    if (found !== null) return { found, isId: false, end: Math.max(stop, found.end) };
    end = Math.max(end, stop);
  }
  return { found: null, isId: false, end };
}

function wordAt(
  text: string,
  start: number,
  end: number,
  group: Group,
  floor: number,
  about: () => About,
): Found | null {
  const isMixed = end - start > group.end - group.start;
  return (
    (isMixed ? (ibanAt(text, start) ?? ninoAt(text, start) ?? codeWordAt(text, start, end, about)) : null) ??
    (isMixed && text[end] === '-' ? dashedLicenceAt(text, start, about) : null) ??
    (end - start === 4 && (text[end] === '.' || text[start - 1] === '.') ? dottedMacAt(text, start) : null) ??
    (text[start - 1] === ' ' ? ninoAt(text, start - 3) : null) ??
    (text[end] === ':' || text[start - 1] === ':' ? hexAddressAt(text, group.start, floor) : null) ??
    (end - start === 2 && (text[end] === '-' || text[start - 1] === '-') ? dashedMacAt(text, group.start) : null)
  );
}

const isWordCode = (code: number): boolean => isLetter(code) || (code >= 48 && code <= 57);

/** 2026-05-01, the most frequent long number there is. */
function isDate({ groups, size }: Run): boolean {
  if (groups.length !== 3 || size !== 8 || groups[0]!.digits.length !== 4 || groups[1]!.digits.length !== 2)
    return false;
  const [, { digits: month }, { digits: day }] = groups as [Group, Group, Group];
  return /^(?:19|20)/.test(groups[0]!.digits) && Number(month) <= 12 && Number(day) <= 31;
}

const hidden = /^[-\s–]{0,3}[*●○＊]/;

function judge(text: string, run: Run, taken: Found | null, about: () => About, spans: Span[]): void {
  const { groups } = run;
  const isLong = run.size > LEAST || (run.size === LEAST && hidden.test(text.slice(run.end, run.end + 4)));
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i]!;
    if (taken !== null && group.start < taken.end && group.end > taken.start) continue;
    const hit = ipv4At(text, run, i) ?? (isLong ? longAt(text, run, i, about) : null);
    if (hit === null) continue;
    spans.push(spanOf(hit));
    i = hit.last;
  }
}

function longAt(text: string, run: Run, at: number, about: () => About): Hit | null {
  for (const recognize of nationalIds) {
    const hit = recognize(text, run, at, about);
    if (hit !== null) return hit;
  }
  return phoneAt(text, run, at, about);
}
