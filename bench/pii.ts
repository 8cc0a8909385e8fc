/**
 * How well personal data is found, and how fast. `--data FILE`: a list of { full_text, spans: [{ entity_type, start_position,
 * end_position }], template_id }, as microsoft/presidio-research makes them. Nothing of the file is used for anything but counting.
 *
 * A found span counts where it covers at least half of what either covers (intersection over union, in characters) of a span of
 * the same type; each span counts once. A span of another type is a false find and a miss. Types by `mapping`, below; what is not
 * in it is in no figure, neither as a find nor as a miss. F2 weighs recall four times as much as precision.
 *
 * `held_out`: the same over the half of the templates that no rule was written against (an even hash of template_id). `tune`: the other
 * half. Options: --data FILE, --misses TYPE prints what was missed and what was found falsely, in the tuning half only.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { entities } from '../src/collect/entities/entities.ts';
import { findAll, joined, type Redactor, type Span } from '../src/collect/redact/redactor.ts';
import { redactors } from '../src/collect/redact/rules.ts';

const { values: options } = parseArgs({ options: { data: { type: 'string' }, misses: { type: 'string' } } });
if (options.data === undefined) throw new Error('usage: npm run bench -- pii -- --data FILE');

/** The file's types, by ours. */
const mapping: Readonly<Record<string, string>> = {
  email: 'EMAIL_ADDRESS',
  phone: 'PHONE_NUMBER',
  card: 'CREDIT_CARD',
  iban: 'IBAN_CODE',
  ip: 'IP_ADDRESS',
  'us-ssn': 'US_SSN',
  licence: 'US_DRIVER_LICENSE',
  person: 'PERSON',
  address: 'ADDRESS',
  location: 'LOCATION',
  organization: 'ORGANIZATION',
  birth: 'DATE_TIME',
};
/** What other files of the same makers call them. */
const alike: Readonly<Record<string, string>> = {
  STREET_ADDRESS: 'ADDRESS',
  GPE: 'LOCATION',
  IBAN: 'IBAN_CODE',
  EMAIL: 'EMAIL_ADDRESS',
  PHONE: 'PHONE_NUMBER',
  DATE: 'DATE_TIME',
  ORG: 'ORGANIZATION',
};
const types = new Set(Object.values(mapping));

type Gold = { readonly type: string; readonly start: number; readonly end: number };
type Sample = { readonly text: string; readonly gold: readonly Gold[]; readonly isHeldOut: boolean };

const samples: Sample[] = (
  JSON.parse(readFileSync(options.data, 'utf8')) as {
    full_text: string;
    spans: { entity_type: string; start_position: number; end_position: number }[];
    template_id?: number | string | null;
  }[]
).map(({ full_text, spans, template_id }) => ({
  text: full_text,
  gold: spans
    .map(({ entity_type, start_position, end_position }) => ({
      type: alike[entity_type] ?? entity_type,
      start: start_position,
      end: end_position,
    }))
    .filter(({ type }) => types.has(type)),
  isHeldOut: createHash('sha256').update(`template ${template_id}`).digest()[0]! % 2 === 0,
}));

const everything: readonly Redactor[] = [...redactors, entities];
const found = samples.map(({ text }) =>
  joined(findAll(text, everything)).flatMap(({ kind, start, end }) => {
    const type = mapping[kind];
    return type === undefined ? [] : [{ type, start, end }];
  }),
);

const overlap = (a: Gold, b: Gold): number => {
  const shared = Math.min(a.end, b.end) - Math.max(a.start, b.start);
  return shared <= 0 ? 0 : shared / (Math.max(a.end, b.end) - Math.min(a.start, b.start));
};

type Tally = { hits: number; finds: number; gold: number };
const figures = ({ hits, finds, gold }: Tally) => {
  const precision = finds === 0 ? (gold === 0 ? 1 : 0) : hits / finds;
  const recall = gold === 0 ? 1 : hits / gold;
  const f2 = precision + recall === 0 ? 0 : (5 * precision * recall) / (4 * precision + recall);
  return { precision: round(precision), recall: round(recall), f2: round(f2), gold, finds };
};
const round = (value: number) => Math.round(value * 1000) / 1000;

function tally(take: (sample: Sample) => boolean): { overall: Tally; perType: Map<string, Tally> } {
  const perType = new Map<string, Tally>([...types].map((type) => [type, { hits: 0, finds: 0, gold: 0 }]));
  samples.forEach((sample, i) => {
    if (!take(sample)) return;
    const left = [...sample.gold];
    for (const { type } of left) perType.get(type)!.gold++;
    for (const span of found[i]!) {
      const of = perType.get(span.type)!;
      of.finds++;
      const best = left.findIndex((gold) => gold.type === span.type && overlap(gold, span) >= 0.5);
      if (best >= 0) {
        left.splice(best, 1);
        of.hits++;
      } else if (options.misses === span.type && !sample.isHeldOut) show('false', sample.text, span);
    }
    for (const gold of left) if (options.misses === gold.type && !sample.isHeldOut) show('missed', sample.text, gold);
  });
  const overall = { hits: 0, finds: 0, gold: 0 };
  for (const one of perType.values()) {
    overall.hits += one.hits;
    overall.finds += one.finds;
    overall.gold += one.gold;
  }
  return { overall, perType };
}

function show(what: string, text: string, { start, end }: Gold): void {
  console.log(
    what,
    JSON.stringify(text.slice(start, end)),
    'in',
    JSON.stringify(text.slice(Math.max(0, start - 60), end + 40)),
  );
}

/** Processor time over the file's own words, again and again until a second has passed. */
function speed(find: (text: string) => Span[]): number {
  for (const { text } of samples) find(text);
  const started = process.cpuUsage();
  let bytes = 0;
  for (;;) {
    for (const { text } of samples) {
      find(text);
      bytes += Buffer.byteLength(text);
    }
    const { user, system } = process.cpuUsage(started);
    if (user + system > 1e6) return round(bytes / (user + system));
  }
}

const whole = tally(() => true);
const misses = options.misses;
if (misses === undefined) {
  console.log('type                precision  recall     f2   gold  finds');
  for (const [type, one] of whole.perType) {
    const { precision, recall, f2, gold, finds } = figures(one);
    const cell = (value: number, width: number) => String(value).padStart(width);
    console.log(
      `${type.padEnd(18)}${cell(precision, 11)}${cell(recall, 8)}${cell(f2, 7)}${cell(gold, 7)}${cell(finds, 7)}`,
    );
  }
}
const of = (take: (sample: Sample) => boolean) => figures(tally(take).overall);
console.log(
  JSON.stringify({
    bench: 'pii',
    samples: samples.length,
    ...figures(whole.overall),
    held_out: misses === undefined ? of(({ isHeldOut }) => isHeldOut) : undefined,
    tune: misses === undefined ? of(({ isHeldOut }) => !isHeldOut) : undefined,
    held_out_person:
      misses === undefined ? figures(tally(({ isHeldOut }) => isHeldOut).perType.get('PERSON')!) : undefined,
    per_type: Object.fromEntries([...whole.perType].map(([type, one]) => [type, figures(one)])),
    mb_per_s: {
      deterministic: speed((text) => findAll(text, redactors)),
      entities: speed((text) => entities.find(text)),
    },
  }),
);
