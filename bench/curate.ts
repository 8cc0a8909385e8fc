/**
 * How fast conversations go through every gate into a dataset, whether ten times as many take about ten times as long, and how
 * much memory they take: 10 thousand, then 100 thousand, each scored beforehand, of as many users as a real shop would have. Nothing
 * leaves out the expensive gates: most pass to the last one, and what is personal is looked for as `pawl curate run` does unless told
 * otherwise. Each step is curated by a process of its own, whose memory nothing
 * else has grown. `--max 10000` stops earlier, `--max 1000000` adds a step; `--own-words 0.1` lets a tenth of the conversations ask
 * what nobody else asks; `--instructions shared` are the same for all, where `filled` ones, the default, have the caller's name in them, and
 * with `none` there are none.
 * Progress on stderr; the last line of stdout is one JSON object: `per_s` of the largest step, `growth` of its time over that of the
 * step before, `cpu_growth` the same of that process's processor time, which neighbours on the machine change less, `server_cpu_growth`
 * of the database's; `rss_mb` the most memory that the process of the largest step had, `rss_before_mb` what it had before it curated,
 * `rss_growth` the first over the same of the step before; `steps` has them for each.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openArtifacts } from '../src/artifacts/open.ts';
import { piiSettings } from '../src/collect/redact/settings.ts';
import type { Turn } from '../src/collect/turn.ts';
import { curateWindow } from '../src/curate/run.ts';
import { converse } from '../src/score/fixtures.ts';
import { outcome } from '../src/score/outcome.ts';
import { scoreWindow } from '../src/score/run.ts';
import { weighted } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { growthOf, startedSeconds, type Times, timesOf, timesText } from './processor-time.ts';

const options = {
  max: { type: 'string', default: '100000' },
  'own-words': { type: 'string', default: '0' },
  instructions: { type: 'string', default: 'filled' },
  /** The home that holds the database: curates what is in it, and says what that took. */
  home: { type: 'string' },
} as const;
const { values } = parseArgs({ options });
const max = Number(values.max);
if (!Number.isInteger(max) || max < 1000) throw new Error(`--max ${values.max} must be a whole number from 1000 on.`);
const steps = [...new Set([10_000, 100_000, max].filter((step) => step <= max))];
const ownWords = Number(values['own-words']);
const { instructions } = values;
if (!['none', 'shared', 'filled'].includes(instructions))
  throw new Error(`--instructions ${instructions} must be none, shared or filled.`);

const reward = weighted({ resolved: [1, outcome('resolved')] });
const [users, hourMs] = [2000, 3_600_000];
const apartMs = 60;
const began = Date.now() - 20 * hourMs;
const topics = [
  'order',
  'refund',
  'invoice',
  'address',
  'delivery',
  'account',
  'password',
  'discount',
  'return',
  'size',
];
const asks = [
  'where is',
  'please change',
  'I cannot find',
  'what about',
  'who has',
  'why did you cancel',
  'how do I get',
];
const firsts = ['Karen', 'Robert', 'Laura', 'Daniel', 'Emily', 'Marcus', 'Helen', 'Peter'];
const lasts = ['Hayes', 'Jones', 'Brown', 'Clark', 'Moore'];
const pick = (list: readonly string[], n: number): string => list[n % list.length]!;
/** Words with digits say nothing to k-anonymity. */
const letters = (text: string): string => text.replace(/\d/g, (digit) => 'abcdefghij'[Number(digit)]!);
const about = (n: number): string =>
  Array.from({ length: 40 }, (_, i) => `w${(n * 7919 + i * 104_729) % 9973}`).join(' ');

const rules = Array.from(
  { length: 12 },
  (_, i) =>
    `${i + 1}. When somebody ${pick(asks, i)} their ${pick(topics, i)}, look it up first, then answer in two sentences.`,
);
/** Instructions of an ordinary length, as a template: with the company's names, and one line that is filled in. */
const toldTo = (user: number): string =>
  [
    'You answer the customers of Hartley Goods Ltd in Portland. Sarah Miller is the head of support.',
    ...(instructions === 'filled'
      ? [`The customer is ${pick(firsts, user)} ${pick(lasts, user >> 3)}${letters(String(user))}.`]
      : []),
    rules.join('\n'),
    'Never promise a date. Ask Sarah Miller where you do not know.',
  ].join('\n\n');

const window = { agent: 'bench', spec: reward, since: new Date(began - 20 * hourMs), until: new Date() };
type Curated = {
  readonly rows: number;
  readonly clock: number;
  readonly own: number;
  readonly before: number;
  readonly most: number;
};

async function curate(home: string): Promise<Curated> {
  const store = await openStore({ home, join: true });
  const artifacts = openArtifacts({ home });
  const before = process.memoryUsage.rss() / 2 ** 20;
  let rows = 0;
  const { clock, own } = await timesOf(async () => {
    const made = { ...window, now: new Date(), settings: { kAnonymity: 5 }, pii: piiSettings.parse({}) };
    ({ rows } = await curateWindow(store, artifacts, made));
  });
  await store.close();
  return { rows, clock, own, before, most: process.resourceUsage().maxRSS / 1024 };
}

async function curateApart(home: string): Promise<Curated> {
  const args = ['--import', 'tsx', fileURLToPath(import.meta.url), '--home', home];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`The process that curates ended with ${code}.`);
  return JSON.parse(said);
}

async function bench(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'pawl-bench-curate-'));
  const store = await openStore({ home });
  try {
    for (let i = 0; i < users; i++) await giveConsent(store, 'bench', `user-${i}`, new Date(began - hourMs));
    const curated: (Curated & { readonly step: number; readonly times: Times })[] = [];
    let made = 0;
    for (const step of steps) {
      for (; made < step; made += 500) await record(store, made, Math.min(500, step - made));
      await scoreWindow(store, { ...window, now: new Date() });
      console.error(`${step} conversations recorded and scored`);
      const started = startedSeconds();
      const one = await curateApart(home);
      // The process that curated has ended, and is not among those that are counted.
      const server = started === null ? null : startedSeconds()! - started;
      const times = { clock: one.clock, own: one.own, server };
      curated.push({ ...one, step, times });
      console.error(`${step} curated in ${timesText(times)}: ${one.rows} rows, ${one.most.toFixed(0)} MB at most`);
    }
    const last = curated.at(-1)!;
    const former = curated.at(-2);
    console.log(
      JSON.stringify({
        ...{ conversations: made, rows: last.rows, per_s: Math.round(made / last.clock) },
        ...(former && growthOf(former.times, last.times, last.step / former.step)),
        ...{ rss_mb: Math.round(last.most), rss_before_mb: Math.round(last.before) },
        ...(former && { rss_growth: Number((last.most / former.most).toFixed(2)) }),
        steps: curated.map(({ step, clock, most }) => ({
          ...{ conversations: step, per_s: Math.round(step / clock), rss_mb: Math.round(most) },
        })),
      }),
    );
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
}

async function record(store: Store, from: number, count: number): Promise<void> {
  const entries = Array.from({ length: count }, (_, k) => {
    const n = from + k;
    const id = `talk-${n}`;
    const asked =
      (n * 0.6180339887) % 1 < ownWords
        ? letters(`${n} ${about(n)}`)
        : `${pick(asks, n)} my ${pick(topics, n * 3)} ${n}? ${about(n)}`;
    const turns = converse(`Hello, ${asked}`, [{ say: `It is here, ${about(n + 1)}.` }], {
      ...{ agent: 'bench', trajectory: id, user: `user-${n % users}`, startedAt: began + n * apartMs },
    });
    const target = { kind: 'trajectory', id } as const;
    const resolved = { kind: 'outcome', name: 'resolved', value: 1, user: null, target } as const;
    const at = began + n * apartMs + 1000;
    return [
      ...turns.map((turn) => ({ kind: 'turn' as const, turn: told(turn, n % users) })),
      entry.signal({ ...resolved, agent: 'bench', identity: `resolved ${id}`, at, receivedAt: at }),
    ];
  });
  await writeEntries(store, entries.flat());
}

function told({ request, ...turn }: Turn, user: number): Turn {
  if (instructions === 'none') return { ...turn, request };
  const messages = [{ role: 'system', content: toldTo(user) }, ...(request.messages as object[])];
  return { ...turn, request: { ...request, messages } };
}

if (values.home === undefined) await bench();
else console.log(JSON.stringify(await curate(values.home)));
