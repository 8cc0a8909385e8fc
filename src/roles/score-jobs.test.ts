import { pino } from 'pino';
import { expect, test } from 'vitest';
import { agentSchema } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { parseConfig } from '../config.ts';
import { feedback } from '../score/feedback.ts';
import { planScoring } from '../score/run.ts';
import { weighted } from '../score/weighted.ts';
import { entry } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { listScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { scoreJobs } from './score-jobs.ts';

const agent = (score: object) =>
  agentSchema.parse({ name: 'desk', reward: weighted({ votes: [1, feedback()] }), score });

test('there is a job for each agent that is scored by itself, as often as its file says', () => {
  expect(scoreJobs([agent({}), agent({ everyMinutes: 5 }), agent({ everyMinutes: null })])).toMatchObject([
    { name: 'score desk', everyMs: 3_600_000 },
    { name: 'score desk', everyMs: 300_000 },
  ]);
});

test('the job scores what is new, and a plan says so before and asks nobody', async () => {
  const store = await withStore();
  const at = Date.now() - 60_000;
  await writeEntries(store, [
    entry.turn({ trajectory: 'new', startedAt: at }),
    entry.signal({ target: { kind: 'trajectory', id: 'new' }, value: 1, at }),
    entry.turn({ trajectory: 'old', startedAt: at - 3 * 86_400_000 }),
  ]);
  const desk = agent({ lookBackDays: 1 });
  const now = new Date();
  const window = { agent: 'desk', spec: desk.reward, since: new Date(+now - 86_400_000), until: now, now };
  expect(await planScoring(store, window)).toEqual({ trajectories: 1, pending: 1, calls: 0, money: 0, unpriced: 0 });
  expect(await listScores(store, 'new')).toEqual([]);
  const parts = { store, artifacts: {} as Artifacts, config: parseConfig({}, {}, '/'), log: pino({ level: 'silent' }) };
  await scoreJobs([desk])[0]!.run({ ...parts, signal: new AbortController().signal });
  expect((await listScores(store, 'new'))[0]).toMatchObject({ total: 1 });
  expect(await listScores(store, 'old')).toEqual([]);
  expect(await planScoring(store, window)).toMatchObject({ pending: 0 });
});
