/**
 * How fast conversations are scored by rules, and whether ten times as many take ten times as long: 10k, then 100k of another
 * agent, two turns each with a tool call between them, on the embedded server. Then some of them with a judge (test/judge-server.ts,
 * which speaks the wire format of a model server): scored once, and once more under another weighting, which must ask nobody.
 *
 *   per_s         conversations scored per second, of the larger window
 *   growth        time of the larger window over that of the smaller; 10 is in proportion
 *   cpu_growth    the same of this process's processor time, which neighbours on the machine change less
 *   server_cpu_growth   the same of the database's
 *   rerun_s       the larger window once more, with nothing new
 *   rerun_calls   calls to the judge when what it has judged is scored again
 *
 * `--max 20000` makes the larger window smaller (and growth is then scaled to ten times). Progress on stderr; the last line of
 * stdout is one JSON object.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseConfig } from '../src/config.ts';
import { answerLength } from '../src/score/answer-length.ts';
import { openJudge } from '../src/score/ask-open.ts';
import { feedback } from '../src/score/feedback.ts';
import { converse } from '../src/score/fixtures.ts';
import { judge } from '../src/score/judge.ts';
import { language } from '../src/score/language.ts';
import { latency } from '../src/score/latency.ts';
import { matches } from '../src/score/matches.ts';
import { scoreWindow } from '../src/score/run.ts';
import { steps } from '../src/score/steps.ts';
import { toolUse } from '../src/score/tool-use.ts';
import { penalty, type RewardSpec, weighted } from '../src/score/weighted.ts';
import { words } from '../src/score/words.ts';
import { ensurePartitions } from '../src/store/partitions.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { startJudge } from '../test/judge-server.ts';
import { growthOf, type Times, timesOf, timesText } from './processor-time.ts';

const { values } = parseArgs({ options: { max: { type: 'string', default: '100000' } } });
const large = Number(values.max);
const small = 10_000;
if (!Number.isInteger(large) || large <= small) throw new Error(`--max ${values.max} must be above ${small}.`);
const judgedOnes = 200;

const rules = weighted({
  tools: [0.3, toolUse()],
  steps: [0.2, steps()],
  names: [0.2, matches(/order \d+/i)],
  words: [0.1, words({ forbidden: ['refund', 'lawsuit', '환불'] })],
  length: [0.1, answerLength({ min: 3, max: 60 })],
  language: [0.1, language(['en'])],
  feedback: [0.2, feedback()],
  latency: penalty(0.05, latency()),
});

const dayMs = 86_400_000;
const now = new Date();
const since = new Date(+now - 2 * dayMs);
const said = 'The parcel left our warehouse on Monday and should be with you within two working days.';

async function record(store: Store, agent: string, count: number): Promise<void> {
  const batch = 250;
  for (let from = 0; from < count; from += batch) {
    const entries = Array.from({ length: Math.min(batch, count - from) }, (_, k) => {
      const n = from + k;
      const startedAt = +since + Math.floor(((n + 0.5) / count) * dayMs);
      return converse(
        `Where is order ${n}, please?`,
        [
          { say: [['get_order', `{"id":${n}}`]], results: [`{"status":"sent","carrier":"van ${n % 97}"}`] },
          { say: `Order ${n}: ${said}` },
        ],
        { agent, trajectory: `${agent}-${n}`, startedAt, user: `user-${n % 1000}`, origin: 'production' },
      ).map((turn) => ({ kind: 'turn' as const, turn }));
    }).flat();
    await writeEntries(store, entries);
  }
  await store.pool.query('analyze pawl.trajectories; analyze pawl.turns');
}

async function timed(store: Store, agent: string, spec: RewardSpec, count: number): Promise<Times> {
  const times = await timesOf(async () => {
    const { scored, rescored, unchanged } = await scoreWindow(store, { agent, spec, since, until: now, now });
    if (scored + rescored + unchanged !== count)
      throw new Error(`${scored + rescored + unchanged} of ${count} were scored.`);
  });
  console.error(`${agent}: ${count} in ${timesText(times)}`);
  return times;
}

async function judgeTwice(store: Store): Promise<{ first: number; again: number }> {
  const server = await startJudge();
  try {
    const settings = {
      upstreams: { box: { baseUrl: server.url, price: { prompt: 2, completion: 10 } } },
      judge: { upstream: 'box', model: 'judge' },
    };
    const agent = { ...parseConfig(settings, {}, '/').agents[0]!, name: 'judged' };
    const run = async (weight: number): Promise<number> => {
      const judging = openJudge(store, agent)!;
      const spec = weighted({ judge: [weight, judge()], tools: [1, toolUse()] });
      await scoreWindow(store, { agent: 'judged', spec, since, until: now, now, services: { judge: judging } });
      return judging.counts().calls;
    };
    return { first: await run(1), again: await run(2) };
  } finally {
    await server.close();
  }
}

const home = mkdtempSync(join(tmpdir(), 'pawl-bench-score-'));
const store = await openStore({ home });
try {
  await ensurePartitions(
    store,
    [0, 1, 2].map((back) => new Date(+now - back * dayMs).toISOString().slice(0, 10)),
  );
  for (const [agent, count] of [
    ['small', small],
    ['large', large],
    ['judged', judgedOnes],
    ['warm', 500],
  ] as const) {
    console.error(`recording ${count} conversations …`);
    await record(store, agent, count);
  }
  await timed(store, 'warm', rules, 500);
  const first = await timed(store, 'small', rules, small);
  const second = await timed(store, 'large', rules, large);
  const rerun = await timed(store, 'large', rules, large);
  const calls = await judgeTwice(store);
  console.log(
    JSON.stringify({
      per_s: Math.round(large / second.clock),
      ...growthOf(first, second, large / small),
      rerun_s: Number(rerun.clock.toFixed(1)),
      judge_calls: calls.first,
      rerun_calls: calls.again,
    }),
  );
} finally {
  await store.close();
  rmSync(home, { recursive: true, force: true });
}
