/**
 * How well scores that need nobody's opinion predict what really happened: `--data FILE` of conversations in the form of tau-bench
 * (task_id, trial, reward, messages). They are imported into a database of their own without their reward, scored for tool use,
 * rules and thinking, and compared with the reward that was held back: the AUC of each part over the conversations it could measure, and
 * of the best fitted combination on tasks that the fit has not seen (leave one task out), with 95% intervals drawn by task.
 * The rules are what most agents' instructions ask for. They were chosen with figures of the airline file at hand, so that file flatters
 * them; another is the fair test. Last line: {"auc", "low", "high"} of the combination.
 */
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cutLines } from '../src/collect/cut-lines.ts';
import { importConversations } from '../src/collect/import.ts';
import { textOf, toolCallsOf } from '../src/collect/message.ts';
import type { Turn } from '../src/collect/turn.ts';
import { fitWeights, heldOut, type Sample } from '../src/score/fit-weights.ts';
import { implicit } from '../src/score/implicit.ts';
import { auc } from '../src/score/ranks.ts';
import { bootstrap, groupsOf } from '../src/score/resample.ts';
import { rule } from '../src/score/rule.ts';
import { scoreWindow } from '../src/score/run.ts';
import { steps } from '../src/score/steps.ts';
import { thinking } from '../src/score/thinking.ts';
import { toolUse } from '../src/score/tool-use.ts';
import { weighted } from '../src/score/weighted.ts';
import { openStore } from '../src/store/postgres.ts';
import { listScores } from '../src/store/scores.ts';

const { values: given } = parseArgs({ options: { data: { type: 'string' } } });
if (given.data === undefined) throw new Error('--data FILE is missing: conversations in the form of tau-bench.');

type Line = { task_id: number | string; trial?: number; reward: number; messages?: object[]; traj?: object[] };
type Truth = { readonly id: string; readonly task: string; readonly success: boolean };
const truths: Truth[] = [];
const lines: string[] = [];
const lengths: number[] = [];
for await (const text of cutLines(createReadStream(given.data))) {
  if (text.trim() === '') continue;
  const { task_id: task, trial = 0, reward, messages, traj } = JSON.parse(text) as Line;
  const said = messages ?? traj ?? [];
  const id = `line-${lines.length}`;
  truths.push({ id, task: String(task), success: reward >= 1 });
  lines.push(JSON.stringify({ id, messages: said, keys: [`task:${task}`, `trial:${trial}`] }));
  const written = (said as { role?: string; content?: unknown }[]).filter(({ role }) => role === 'assistant');
  lengths.push(written.reduce((sum, message) => sum + Math.ceil(JSON.stringify(message).length / 4), 0));
}
const median = [...lengths].sort((a, b) => a - b)[lengths.length >> 1] ?? 1;

const answerOf = ({ choices }: Turn) => choices[0]?.message ?? {};
const shareOf = (turns: readonly Turn[], is: (turn: Turn) => boolean): number | null =>
  turns.length === 0 ? null : turns.filter(is).length / turns.length;
const spec = weighted({
  tools: [1, toolUse()],
  thinking: [1, thinking({ of: 'completion', median })],
  steps: [1, steps()],
  implicit: [1, implicit()],
  // A turn calls a tool or speaks to the user, not both: while it speaks it does not know the result yet.
  'call-or-speak': [
    1,
    rule('call or speak', 1, ({ turns }) =>
      shareOf(
        turns.filter((turn) => toolCallsOf(answerOf(turn)).length > 0),
        (turn) => textOf(answerOf(turn).content).trim() === '',
      ),
    ),
  ],
  // One call at a time, so that each can build on the one before.
  'one-call': [
    1,
    rule('one call', 1, ({ turns }) =>
      shareOf(
        turns.filter((turn) => toolCallsOf(answerOf(turn)).length > 0),
        (turn) => toolCallsOf(answerOf(turn)).length === 1,
      ),
    ),
  ],
  // What is said in few words, in few turns, went straight.
  brevity: [
    1,
    rule(
      'brevity',
      1,
      ({ turns }) => 1 / (1 + turns.reduce((n, turn) => n + textOf(answerOf(turn).content).length, 0) / 2000),
    ),
  ],
  economy: [1, rule('economy', 1, ({ turns }) => 1 / (1 + turns.length / 10))],
});

const home = mkdtempSync(join(tmpdir(), 'pawl-predict-'));
const store = await openStore({ home });
const samples: (Sample & { readonly success: boolean })[] = [];
const names = spec.parts.map(({ name }) => name);
try {
  const now = new Date();
  const about = { agent: 'predict', origin: 'production', secret: 's'.repeat(32), now } as const;
  const { turns, bad } = await importConversations(store, { ...about, lines });
  const since = new Date(+now - 86_400_000);
  const until = new Date(+now + 86_400_000);
  const { scored, broken } = await scoreWindow(store, { agent: 'predict', spec, since, until, now });
  console.error(`${lines.length} conversations, ${turns} turns, ${scored} scored, ${broken} broken, ${bad} not taken`);
  for (const { id, task, success } of truths) {
    const [score] = await listScores(store, id, 'predict');
    if (score === undefined) continue;
    const values = names.map((name) => score.parts[name]?.value ?? null);
    samples.push({ group: task, target: Number(success), success, values });
  }
} finally {
  await store.close();
  rmSync(home, { recursive: true, force: true });
}

type Row = { readonly group: string; readonly value: number; readonly success: boolean };
const told = (rows: readonly Row[]) => {
  const figure = (some: readonly Row[]) =>
    auc(
      some.map(({ value }) => value),
      some.map(({ success }) => success),
    );
  const interval = bootstrap(
    groupsOf(rows, ({ group }) => group),
    figure,
    { times: 2000 },
  );
  return { measured: rows.length, auc: figure(rows), low: interval?.low ?? null, high: interval?.high ?? null };
};
const rowsOf = (values: readonly (number | null)[]): Row[] =>
  samples.flatMap(({ group, success }, i) => (values[i] === null ? [] : [{ group, success, value: values[i]! }]));

const tasks = new Set(samples.map(({ group }) => group)).size;
const combination = told(rowsOf(heldOut(samples, { folds: tasks })));
const fitted = fitWeights(samples);
const shown = (value: number | null) => (value === null ? '   –' : value.toFixed(3));
console.log(
  `${samples.length} conversations of ${tasks} tasks, ${samples.filter(({ success }) => success).length} succeeded`,
);
console.log('part            measured    AUC   95% interval    weight');
for (const [j, name] of names.entries()) {
  const { measured, auc: found, low, high } = told(rowsOf(samples.map(({ values }) => values[j]!)));
  const weight = fitted === null ? '–' : fitted[j]!.toFixed(3);
  console.log(
    `${name.padEnd(15)} ${String(measured).padStart(8)}  ${shown(found)}  ${shown(low)} to ${shown(high)}  ${weight.padStart(6)}`,
  );
}
const { auc: found, low, high } = combination;
console.log(
  `combination     ${String(combination.measured).padStart(8)}  ${shown(found)}  ${shown(low)} to ${shown(high)}  held out`,
);
console.log(JSON.stringify({ auc: found, low, high }));
