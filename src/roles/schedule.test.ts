import { pino } from 'pino';
import { expect, it } from 'vitest';
import { until } from '../../test/pawl.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { readJobs, saveJob } from '../store/jobs.ts';
import { withStore } from '../store/test-store.ts';
import { isDue, startSchedule } from './schedule.ts';

const minute = 60_000;
const hourly = { everyMs: 60 * minute };
const record = { name: 'x', process: 'p', failures: 0, failedAt: null, problem: null };

it('a job is due when it was never done, when its time is over, and a while after a failure', () => {
  const ended = new Date(0);
  expect(isDue(hourly, undefined, 0)).toBe(true);
  expect(isDue(hourly, { ...record, endedAt: ended }, 59 * minute)).toBe(false);
  expect(isDue(hourly, { ...record, endedAt: ended }, 60 * minute)).toBe(true);
  const failed = (failures: number) => ({ ...record, endedAt: ended, failures, failedAt: new Date(60 * minute) });
  expect(isDue(hourly, failed(1), 60.5 * minute)).toBe(false);
  expect(isDue(hourly, failed(1), 61 * minute)).toBe(true);
  expect(isDue(hourly, failed(3), 63 * minute)).toBe(false);
  expect(isDue(hourly, failed(3), 64 * minute)).toBe(true);
  expect(isDue(hourly, failed(30), 119 * minute)).toBe(false);
  expect(isDue(hourly, failed(30), 120 * minute)).toBe(true);
});

it('is done once by all workers of a database, and a failure is noted', async () => {
  const store = await withStore();
  const config = parseConfig({}, {}, '/nowhere');
  const artifacts = openArtifacts(config);
  const log = pino({ level: 'silent' });
  let done = 0;
  const jobs = [
    { name: 'good', everyMs: 60 * minute, run: async () => void done++ },
    { name: 'bad', everyMs: 60 * minute, run: () => Promise.reject(new Error('The disk is full.')) },
  ];
  const workers = ['a', 'b', 'c'].map((process) => startSchedule({ store, artifacts, config, log, process }, jobs));
  const found = await until(
    () => readJobs(store),
    (all) => all.size === 2,
  );
  for (const worker of workers) await worker.close();
  expect(done).toBe(1);
  expect(found.get('bad')).toMatchObject({ endedAt: null, failures: 1, problem: 'The disk is full.' });
  expect(found.get('good')).toMatchObject({ failures: 0, problem: null });
  await saveJob(store, 'bad', 'a', null);
  expect((await readJobs(store)).get('bad')).toMatchObject({ failures: 0, problem: null });
});
