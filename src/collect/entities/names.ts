/**
 * People, organisations and places, by capitals, a dictionary and the words around. A chunk is a run of capitalised words; what it is
 * follows from the surest of: a title before it, a known first name in it, a company's ending, a known place, and what the
 * sentence says ("my name is …", "lives in …", "works at …"). A single capitalised word of which nothing is known stays:
 * it is more often a product than a person. Texts without any capital are read by the dictionary and the sentences alone.
 */
import type { Span } from '../redact/redactor.ts';
import { countryAt, countryStartsAt, isPlaceName, kindOf } from './lexicon.ts';
import { type Word, wordsOf } from './words.ts';

const titles = /^(?:mr|mrs|ms|miss|dr|prof|professor|herr|frau|mme|mlle|sra|don|doña|lady|lord)\.?$/i;
const particles = /^(?:van|der|den|de|la|le|di|da|do|dos|das|del|della|von|zu|bin|ibn|al|el|ter|ten|af|av|y|e|st\.?)$/i;
const company =
  /^(?:inc|llc|ltd|corp|corporation|gmbh|ag|plc|company|group|bank|university|institute|association|foundation|partners|systems|technologies|technology|solutions|services|labs|media|center|centre|networks|holdings|capital|insurance|analytics|software|consulting|international|industries|ventures|energy|health|college|agency|council|society|club|hospital)\.?$/i;
const verbs =
  /^(?:is|was|will|had|has|said|says|shouted|spent|listed|lives|lived|works|worked|asked|asks|told|wrote|writes|called|calls|explained|explains|points|sang|met|married|died|moved|thinks|wants|needs|likes|can|could|would|should|didn't|doesn't|and)$/i;
const placeBefore = /^(?:in|near|visit|visiting|visited|city|around|across|outside|toward|towards)$/i;
const companyBefore = /^(?:at|joined|for|founded|acquired|by)$/i;

/** Sentences that end where a name begins. */
const personBefore =
  /(?:\bname(?: is|'s|:| appears as)?(?: on the account\?? user:)?|\b(?:i am|i'm|this is|it's under|calls? me|call me|named (?:him|her|them)|known as|signed|sincerely,?|regards,?|hi|hello|hey|dear|thanks,?|maiden name is|partner's name|tribute to|songs? by|speak (?:to|with)|contact|ask for|follow up with|directed by|starring|assistant to|married to|son of|daughter of|wife|husband|fan of|says|said|by|tell|add|like|user:))\s*$/i;
const placeSaid =
  /(?:\b(?:lives? in|living in|born in|grew up in|based in|moved (?:here )?(?:from|to)|originally from|coming to|travel(?:l?ing)? to|trip to|arrived at|here from|i am in|i'm in|home city|headquartered in))\s*$/i;
const companySaid =
  /(?:\b(?:works? (?:at|for)|working (?:at|for)|employed (?:at|by)|a year at|following year at|the address of|recorded for|later became|meet \w{6,9} at|company|employer|firm)|\bis from)\s*$/i;
const companyBehind =
  /^\s*(?:office\b|invested\b|is the brainchild|headquarters|employees|shares\b|was founded|announced)/i;

const BEFORE = 48;

export function namesIn(text: string): Span[] {
  const spans: Span[] = [];
  const words = wordsOf(text);
  const hasCapitals = words.some(({ isCapital }) => isCapital);
  const allCapitals = hasCapitals && !/\p{Ll}/u.test(text);
  if (allCapitals) return koreanNames(text, spans);
  for (let i = 0; i < words.length; ) {
    const country = countryAt(text, words[i]!.start);
    if (country > 0 && (words[i]!.isCapital || !hasCapitals)) {
      const start = words[i]!.start;
      spans.push({ start, end: start + country, kind: 'location', confidence: 0.8, isContextual: true, isGuess: true });
      while (i < words.length && words[i]!.start < start + country) i++;
      continue;
    }
    const last = chunkEnd(words, i, hasCapitals);
    if (last < i) {
      i++;
      continue;
    }
    judge(text, words, i, last, spans, hasCapitals);
    i = last + 1;
  }
  return koreanNames(text, spans);
}

/** The last word of the chunk that begins at `i`; before it: none does. */
function chunkEnd(words: readonly Word[], i: number, hasCapitals: boolean): number {
  const begins = (word: Word | undefined) =>
    word !== undefined && (hasCapitals ? word.isCapital : isLowName(word.text));
  if (!begins(words[i])) return i - 1;
  let last = i;
  while (last - i < 5) {
    let next = last + 1;
    while (
      words[next] !== undefined &&
      next - last <= 3 &&
      words[next]!.gap === ' ' &&
      particles.test(words[next]!.text) &&
      !words[next]!.isCapital
    )
      next++;
    const word = words[next];
    if (word === undefined || !/^(?: |\u00a0| & )$/.test(word.gap) || countryStartsAt(word)) break;
    const isNext = hasCapitals ? word.isCapital : kindOf(word.text) !== 'word' && /^\p{L}/u.test(word.text);
    if (!isNext) break;
    last = next;
  }
  return last;
}

const isLowName = (word: string): boolean => {
  if (titles.test(word)) return true;
  const kind = kindOf(word);
  return kind === 'first-name' || kind === 'last-name' || kind === 'country' || kind === 'place' || kind === 'unknown';
};

function judge(
  text: string,
  words: readonly Word[],
  from: number,
  to: number,
  spans: Span[],
  hasCapitals: boolean,
): void {
  let first = from;
  let hasTitle = false;
  while (first <= to && titles.test(words[first]!.text)) {
    hasTitle = true;
    first++;
  }
  // The first word of a sentence has a capital anyway.
  while (first < to && isOrdinary(words[first]!)) first++;
  let last = to;
  while (last > first && isOrdinary(words[last]!, hasCapitals) && !company.test(words[last]!.text)) last--;
  if (first > last) return;
  const chunk = words.slice(first, last + 1);
  const start = chunk[0]!.start;
  const end = chunk[chunk.length - 1]!.end;
  const value = text.slice(start, end);
  if (value.length < 2 || isMask(text, start, end)) return;
  const kind = hasTitle ? 'person' : kindOfChunk(text, words, chunk, first, last, hasCapitals);
  if (kind !== null)
    spans.push({ start, end, kind, confidence: hasTitle ? 0.9 : 0.6, isContextual: true, isGuess: true });
}

/** What stands in brackets with a number was personal before. */
const isMask = (text: string, start: number, end: number): boolean =>
  text[start - 1] === '[' && /^(?:_[\dh]|\])/.test(text.slice(end, end + 2));

const isOrdinary = ({ text, isCapital }: Word, hasCapitals = true): boolean => {
  const kind = kindOf(text);
  return kind === 'word' || kind === 'day' || (!isCapital && hasCapitals && kind === 'unknown') || /^\d/.test(text);
};

function kindOfChunk(
  text: string,
  words: readonly Word[],
  chunk: readonly Word[],
  first: number,
  last: number,
  hasCapitals: boolean,
): 'person' | 'location' | 'organization' | null {
  const value = chunk.map((word) => word.text).join(' ');
  const kinds = chunk.map((word) => kindOf(word.text));
  const { start } = chunk[0]!;
  const { end } = chunk[chunk.length - 1]!;
  const before = text.slice(Math.max(0, start - BEFORE), start).replace(/["“”'(\\]+$/, '');
  const behind = text.slice(end, end + 30);
  const previous = words[first - 1];
  const isNear = previous !== undefined && /^[ \u00a0]$/.test(chunk[0]!.gap);
  const prior = isNear ? previous.text : '';
  const following = words[last + 1];
  const next = following !== undefined && /^[ \u00a0]$/.test(following.gap) ? following.text : '';
  if (isPlaceName(value)) return 'location';
  if (kinds.every((kind) => kind === 'word' || kind === 'day')) return null;
  if (chunk.length > 1 && company.test(chunk[chunk.length - 1]!.text)) return 'organization';
  if (companyBehind.test(behind) || companySaid.test(before))
    return kinds[0] === 'first-name' && chunk.length > 1 ? 'person' : 'organization';
  if (placeSaid.test(before) || (placeBefore.test(prior) && kinds[0] !== 'first-name')) return 'location';
  if (kinds.includes('first-name')) return 'person';
  if (personBefore.test(before)) return 'person';
  if (kinds.includes('last-name')) return 'person';
  if (kinds.length === 1 && kinds[0] === 'organization') return 'organization';
  if (kinds.every((kind) => kind === 'place' || kind === 'country')) return 'location';
  if (!hasCapitals) return null;
  if (companyBefore.test(prior)) return 'organization';
  const isStart = !isNear;
  const isUnknown = kinds.some((kind) => kind === 'unknown');
  if (!isUnknown || /^[\p{Lu}\d.-]+$/u.test(value)) return null;
  if (chunk.length >= 2 && chunk.length <= 4) return 'person';
  if (chunk.length === 1 && verbs.test(next) && (isStart || /^(?:and|that|when|but|because|as|if|while)$/i.test(prior)))
    return 'person';
  if (chunk.length === 1 && isStart && /^[,:]\s/.test(behind) && value.length > 2) return 'person';
  return null;
}

const surnames = '김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진지엄채원천방공현';
const koreanSaid = new RegExp(
  `(?:이름은|성함은|저는|제가|성명[:은]?|예금주[:는]?|고객명[:은]?|담당자[:는]?|수령인[:은]?)\\s?([${surnames}][가-힣]{1,2}?)(?=입니다|이고|이에요|예요|이며|라고|님|씨|[\\s,.)]|$)`,
  'gu',
);
const koreanTitled = new RegExp(
  `(?<![가-힣])([${surnames}][가-힣]{2})(?=\\s?(?:님|씨|고객님|선생님|대리|과장|부장|팀장|사장님|교수)(?![가-힣]{2}))`,
  'gu',
);

function koreanNames(text: string, spans: Span[]): Span[] {
  if (!/[가-힣]/.test(text)) return spans;
  for (const pattern of [koreanSaid, koreanTitled])
    for (const found of text.matchAll(pattern)) {
      const start = found.index + found[0].length - found[1]!.length;
      spans.push({
        start,
        end: start + found[1]!.length,
        kind: 'person',
        confidence: 0.7,
        isContextual: true,
        isGuess: true,
      });
    }
  return spans;
}
