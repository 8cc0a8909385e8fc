import { expect, test } from 'vitest';
import { createJobs } from './jobs.ts';
import type { Report } from './report.ts';

const report = { id: 'report-1' } as Report;
const counting = () => {
  let next = 0;
  return createJobs(
    () => `job-${next++}`,
    () => 5,
  );
};

test('one runs at a time for an agent, and says how far it is', async () => {
  const jobs = counting();
  let end = (_: Report) => {};
  let say = (_played: number, _total: number) => {};
  jobs.start('a', (_, onProgress) => {
    say = onProgress;
    return new Promise((resolve) => {
      end = resolve;
    });
  });
  say(3, 8);
  expect(jobs.start('a', async () => report)).toBeNull();
  expect(jobs.get('job-0')).toMatchObject({ status: 'running', played: 3, total: 8, report: null, endedAt: null });
  expect(jobs.start('b', async () => report)).toMatchObject({ agent: 'b', status: 'running' });
  end(report);
  await jobs.close();
  expect(jobs.get('job-0')).toMatchObject({ status: 'done', report: 'report-1', endedAt: 5 });
  expect(jobs.running('a')).toBeNull();
});

test('one that fails says why, and the next may start', async () => {
  const jobs = counting();
  jobs.start('a', () => Promise.reject(new Error('no such file')));
  await new Promise(setImmediate);
  expect(jobs.get('job-0')).toMatchObject({ status: 'failed', error: 'no such file' });
  expect(jobs.start('a', async () => report)).not.toBeNull();
  await jobs.close();
});

test('closing stops those that run, and none begins after', async () => {
  const jobs = counting();
  jobs.start(
    'a',
    (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  await jobs.close();
  expect(jobs.get('job-0')).toMatchObject({ status: 'failed', error: expect.stringContaining('stopped meanwhile') });
  expect(jobs.start('b', async () => report)).toBeNull();
});

test('old ones are forgotten', async () => {
  const jobs = counting();
  for (let i = 0; i < 150; i++) {
    jobs.start('a', async () => report);
    await new Promise(setImmediate);
  }
  expect([jobs.get('job-0'), jobs.get('job-149')?.status]).toEqual([null, 'done']);
});
