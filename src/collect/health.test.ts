import { expect, test } from 'vitest';
import { healthOf } from './health.ts';
import { noCounts } from './recorder.ts';

const well = noCounts();

test('there is nothing to say while all is well', () => {
  expect(healthOf(well)).toEqual({ status: 'ok', problems: [] });
});

test.each([
  [{ diskOk: false }, /cannot be written/],
  [{ sinkUp: false }, /away or silent/],
  [{ sinkLagMs: 45_000 }, /45 s behind/],
  [{ dropped: { ...well.dropped, crash: 2, disk: 1 } }, /3 exchanges could not be recorded .*× crash/],
  [{ corrupt: 2 }, /2 damaged/],
  [{ refused: 1 }, /1 entries were refused .*rejected\.jsonl/],
  [{ found: ['5.journal is a folder: it is left alone.'] }, /is a folder/],
])('%j is one problem, in words', (trouble, said) => {
  const { status, problems } = healthOf({ ...well, ...trouble });
  expect(status).toBe('degraded');
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(said);
});

test('lost log lines are a problem too', () => {
  expect(healthOf(well, 2).problems).toEqual(['2 log lines could not be written']);
});
