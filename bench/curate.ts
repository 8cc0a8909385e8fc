/**
 * How fast conversations go through every gate into a dataset, and whether ten times as many take about ten times as long and
 * how much memory they take: 10 thousand, then 100 thousand, each scored beforehand, of as many users as a real shop would have. Nothing
 * leaves out the expensive gates: most pass to the last one. `--max 10000` stops earlier.
 * Progress on stderr; the last line of stdout is one JSON object: `per_s` of the largest step, `growth` of its time over that of the
 * step before, `cpu_growth` the same of this process's processor time, which neighbours on the machine change less, `server_cpu_growth` of the database's, `rss_mb` the most that the process took beyond what it had before it curated.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openArtifacts } from '../src/artifacts/open.ts';
import { curateWindow } from '../src/curate/run.ts';
import { converse } from '../src/score/fixtures.ts';
import { outcome } from '../src/score/outcome.ts';
import { scoreWindow } from '../src/score/run.ts';
import { weighted } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import { openStore } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { growthOf, type Times, timesOf, timesText } from './processor-time.ts';

const { values } = parseArgs({ options: { max: { type: 'string', default: '100000' } } });
const max = Number(values.max);
if (!Number.isInteger(max) || max < 1000) throw new Error(`--max ${values.max} must be a whole number from 1000 on.`);
const steps = [...new Set([10_000, max].filter((step) => step <= max))];

const reward = weighted({ resolved: [1, outcome('resolved')] });
const [users, hourMs] = [2000, 3_600_000];
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
const pick = (list: readonly string[], n: number): string => list[n % list.length]!;
const about = (n: number): string =>
  Array.from({ length: 40 }, (_, i) => `w${(n * 7919 + i * 104_729) % 9973}`).join(' ');

const home = mkdtempSync(join(tmpdir(), 'pawl-bench-curate-'));
const store = await openStore({ home });
try {
  for (let i = 0; i < users; i++) await giveConsent(store, 'bench', `user-${i}`, new Date(began - hourMs));
  const artifacts = openArtifacts({ home });
  const times: Times[] = [];
  let [made, rows, rss] = [0, 0, 0];
  for (const step of steps) {
    for (; made < step; made += 500) {
      const entries = Array.from({ length: Math.min(500, step - made) }, (_, k) => {
        const n = made + k;
        const id = `talk-${n}`;
        const question = `Hello, ${pick(asks, n)} my ${pick(topics, n * 3)} ${n}? ${about(n)}`;
        const turns = converse(question, [{ say: `It is here, ${about(n + 1)}.` }], {
          ...{ agent: 'bench', trajectory: id, user: `user-${n % users}`, startedAt: began + n * 100 },
        });
        const target = { kind: 'trajectory', id } as const;
        const resolved = { kind: 'outcome', name: 'resolved', value: 1, user: null, target } as const;
        const at = began + n * 100 + 1000;
        return [
          ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
          entry.signal({ ...resolved, agent: 'bench', identity: `resolved ${id}`, at, receivedAt: at }),
        ];
      });
      await writeEntries(store, entries.flat());
    }
    const window = { agent: 'bench', spec: reward, since: new Date(began), until: new Date(), now: new Date() };
    await scoreWindow(store, window);
    console.error(`${step} conversations recorded and scored`);
    globalThis.gc?.();
    const before = process.memoryUsage.rss();
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 50);
    times.push(
      await timesOf(async () => {
        ({ rows } = await curateWindow(store, artifacts, { ...window, settings: { kAnonymity: 5 } }));
      }),
    );
    clearInterval(watch);
    rss = (most - before) / 2 ** 20;
    console.error(
      `${step} curated in ${timesText(times.at(-1)!)}: ${rows} rows, ${rss.toFixed(0)} MB more than before`,
    );
  }
  const [first, last] = [times[0]!, times.at(-1)!];
  console.log(
    JSON.stringify({
      ...{ conversations: made, rows, per_s: Math.round(made / last.clock) },
      ...(times.length > 1 && growthOf(first, last, steps.at(-1)! / steps[0]!)),
      rss_mb: Math.round(rss),
    }),
  );
} finally {
  await store.close();
  rmSync(home, { recursive: true, force: true });
}
