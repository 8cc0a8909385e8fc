import { expect, test } from 'vitest';
import { recordingProblems } from './recording-problems.ts';

const well = { diskOk: true, sinkUp: true, sinkLagMs: 0, corrupt: 0, refused: 0, found: [], dropped: { disk: 0 } };

test('there is nothing to say while all is well', () => {
  expect(recordingProblems(well)).toEqual([]);
});

test.each([
  [{ diskOk: false }, /cannot be written/],
  [{ sinkUp: false }, /away or silent/],
  [{ sinkLagMs: 45_000 }, /45 s behind/],
  [{ dropped: { disk: 0, crash: 2, hang: 1 } }, /3 exchanges could not be recorded .*2 × crash, 1 × hang/],
  [{ corrupt: 2 }, /2 damaged/],
  [{ refused: 1 }, /1 entries were refused .*rejected\.jsonl/],
  [{ found: ['5.journal is a folder: it is left alone.'] }, /is a folder/],
])('%j is one problem, in words', (trouble, said) => {
  const problems = recordingProblems({ ...well, ...trouble });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(said);
});
