/** What a person reads of a report at a terminal. */
import { expect, it } from 'vitest';
import { openTerminal } from '../terminal.ts';
import { reportLines } from './command.ts';
import { compareTasks } from './match.ts';

it('of types of case it shows each p corrected for how many types there are', () => {
  const tasks = ['text', 'tool'].flatMap((type) =>
    Array.from({ length: 16 }, (_, i) => ({ id: `${type} ${i}`, type, baseline: i < 8 ? 0 : 1, candidate: 1 })),
  );
  const lines = reportLines(
    {
      ...{ id: 'report-1', agent: 'desk', baseline: 'v1', candidate: 'v2', attempts: 1, temperature: 1, seed: 0 },
      ...{ suite: { name: 'golden', hash: 'abc', tasks: 32 }, ...compareTasks(tasks, 0), tasks, drift: null },
      ...{ verdict: 'pass', reasons: [], seconds: 1, createdAt: 1 },
    },
    openTerminal(),
  );
  const row = (name: string) => lines.find((line) => line.startsWith(name));
  expect(row('all')).toMatch(/<0\.0001$/);
  expect(row('text')).toMatch(/0\.0156$/); // 2 × 0.0078
  expect(row('tool')).toMatch(/0\.0156$/);
});
