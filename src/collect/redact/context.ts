/**
 * What the words around a number say about it. A run of digits alone is an order, a price or a phone: the words just before it
 * decide, and the few behind it ("… office"). Asked once per run and only for runs long enough to be somebody's, so that
 * ordinary prose never comes here. The list is English, Korean and German; what it lacks, an agent adds as a recognizer.
 */
export type About = {
  readonly labels: ReadonlySet<string>;
  /** The words right before it name something else: an order, an invoice, a version. */
  readonly isOther: boolean;
};

const words: Readonly<Record<string, string>> = {
  phone:
    '\\bphones?\\b|\\btel(?:ephone|efon)?\\b|\\bmobile\\b|\\bcell\\b|\\bcall(?:ed|ing)?\\b|\\bfax\\b|\\breach\\b|\\bdial\\b|\\bwhats ?app\\b|\\bsms\\b|\\bring\\b|answering at|\\btext me\\b|contact (?:number|no)|\\bhandy(?:nummer)?\\b|전화|휴대폰|핸드폰|휴대전화|연락처|팩스',
  ssn: '\\bssn\\b|\\bitin\\b|social security',
  nhs: '\\bnhs\\b',
  tax: '\\bsteuer|\\btax[ -]?(?:id|payer|no|number)|\\btin\\b|\\bidnr\\b',
  rrn: '주민(?:등록)?|외국인등록|resident reg|alien reg|\\brrn\\b|\\bfrn\\b',
  brn: '사업자|business reg|\\bbrn\\b',
  licence: "licen[cs]e\\b|\\bdl(?= ?(?:no|nr|number|#|:))|driver'?s?\\b|\\bdriving\\b|면허|f[uü]hrerschein",
  passport: 'passport|여권|reisepass',
  account:
    '\\bbank\\b|\\baccount(?: (?:number|no|#)|:? ?(?=\n))|\\bacct\\b|\\brouting\\b|sort code|\\bkonto|계좌|은행|뱅크|입금|송금|농협|국민|신한|우체국|새마을|토스',
  birth: '\\bd\\.?o\\.?b\\b|\\bborn\\b|birth(?:day|date)?\\b|생년월일|생일|geboren|geburtsdatum',
};
const labels = Object.keys(words);
const any = new RegExp(labels.map((label) => `(?<${label}>${words[label]})`).join('|'), 'gi');
const other =
  /(?:\border|\binvoice|\bticket|\btracking|\bref(?:erence)?|\bcase|\bbooking|\bconfirmation|\bserial|\bsku|\bitem|\bpart|\bversion|\bbuild|\bcommit|\bissue|\bmodel|\bid|\bqty|주문|송장|운송장|상품|예약)(?:\s?(?:no|nr|number|id|번호))?[.:#\s=("'-]{0,5}$|#\s?$/i;

/** "22 498317 office": only behind a number does it say that. */
const ofPhone = /^[\s-]{1,3}(?:office|home|work|mobile|fax|cell)\b/i;

const BEFORE = 48;
const BEHIND = 24;

/** `floor`: where what stood before ends; its words are its own. */
export function aboutRun(text: string, start: number, end: number, floor: number): About {
  const before = text.slice(Math.max(floor, start - BEFORE), start);
  const line = text.slice(end, end + BEHIND);
  const stop = line.search(/[\n\r\d]/);
  const behind = stop < 0 ? line : line.slice(0, stop);
  const isOther = other.test(before);
  const found = labelsIn(`${before}\n${behind}`);
  return { labels: ofPhone.test(behind) ? new Set([...found, 'phone']) : found, isOther };
}

export function labelsIn(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  any.lastIndex = 0;
  for (let hit = any.exec(text); hit !== null; hit = any.exec(text))
    for (const label of labels) if (hit.groups?.[label] !== undefined) found.add(label);
  return found;
}

/** `phoneNumber`, `date_of_birth`: a field's name as words, where it says what its value is; null: it says nothing. */
export function keyContext(name: string): string | null {
  if (name.length > 40) return null;
  const plain = name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ');
  const spoken = plain.replace(/\baccount$/i, 'account number');
  return labelsIn(spoken).size > 0 ? spoken : null;
}
