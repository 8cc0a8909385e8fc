/**
 * A short chaos run with a fixed seed: both kinds of database, a handful of faults each. `npm run chaos` is the long one.
 * The time an answer may be unrecorded is not judged here: this machine may be busy with other tests.
 */
import { expect, it } from 'vitest';
import { failures, figures } from './print.ts';
import { runChaos } from './run.ts';

it('accounts for every id after half a minute of faults', async () => {
  const lines: string[] = [];
  const result = await runChaos({
    seed: 1,
    seconds: 24,
    rate: 40,
    pace: 0.2,
    databases: ['embedded', 'external'],
    windowMs: 10_000,
    say: (line) => lines.push(line),
    signal: new AbortController().signal,
  });
  expect(failures(result, 40), lines.join('\n')).toEqual([]);
  expect(figures(result)).toMatchObject({ lost_acknowledged: 0, doubled: 0, uncounted: 0, own_5xx: 0 });
  const { byKind } = result.account;
  for (const kind of ['call', 'stream', 'vote', 'outcome'] as const)
    expect(byKind[kind].recorded, kind).toBeGreaterThan(0);
}, 600_000);
