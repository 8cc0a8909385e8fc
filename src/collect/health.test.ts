import { expect, it } from 'vitest';
import { healthOf } from './health.ts';
import { noCounts } from './recorder.ts';

it('is well when nothing is wrong, and says in words what is', () => {
  const well = noCounts();
  expect(healthOf(well)).toEqual({ status: 'ok', problems: [] });
  for (const wrong of [
    { diskOk: false },
    { sinkUp: false },
    { sinkLagMs: 31_000 },
    { dropped: { ...well.dropped, disk: 1 } },
    { corrupt: 1 },
    { refused: 1 },
  ])
    expect(healthOf({ ...well, ...wrong }), JSON.stringify(wrong)).toMatchObject({
      status: 'degraded',
      problems: [expect.any(String)],
    });
  expect(healthOf(well, 2).problems).toEqual(['2 log lines could not be written']);
});
