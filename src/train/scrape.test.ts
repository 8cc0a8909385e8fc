import { expect, it } from 'vitest';
import { memoryRunStore, type RunRecord } from './run-record.ts';
import { scrapeRuns } from './scrape.ts';

const run = (id: string, heartbeatAt: number): RunRecord => ({
  ...{
    id,
    agent: 'desk',
    recipe: 'grpo',
    settings: {},
    base: '',
    folder: '',
    seed: 1,
    steps: 2,
    step: 0,
    reason: null,
  },
  ...{
    budget: {},
    spent: { seconds: 0, tokens: 0, money: 0 },
    request: null,
    owner: null,
    createdAt: 0,
    internal: false,
  },
  ...{ status: 'running', heartbeatAt },
});
const step = (n: number, success: number) => ({ step: n, stage: 'grpo', stageStep: n, values: { success } });
const spent = { seconds: 1, tokens: 1, money: 0 };

it('shows the latest step of runs that were under way in the last hour, and of no others', async () => {
  const store = memoryRunStore();
  await store.create(run('now', 0));
  await store.saveStep('now', step(0, 0.25), spent, 7_200_000);
  await store.saveStep('now', step(1, 0.5), spent, 7_200_000);
  await store.create(run('old', 0));
  await store.saveStep('old', step(0, 0.75), spent, 0);
  const text = await scrapeRuns(store, 7_200_001);
  expect(text).toContain('pawl_train_success{run="now",stage="grpo"} 0.5');
  expect(text).not.toContain('0.25');
  expect(text).not.toContain('old');
});

it('says nothing when nothing runs', async () => expect(await scrapeRuns(memoryRunStore(), 0)).toBe(''));
