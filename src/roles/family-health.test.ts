import { expect, it } from 'vitest';
import { dropReasons, noCounts, type RecorderStats } from '../collect/recorder.ts';
import { healthOfAll } from './family-health.ts';
import { gatewayFor } from './presence.ts';

const stats = (more: Partial<RecorderStats>): RecorderStats => ({
  ...noCounts(),
  ...{ queueDepth: 0, queueBytes: 0, restarts: 0, ...more },
});

it('counts of several processes add up, the slowest speaks for all, and whose problem it is is said', () => {
  const none = Object.fromEntries(dropReasons.map((reason) => [reason, 0])) as RecorderStats['dropped'];
  const health = healthOfAll(
    new Map([
      [1, { pid: 10, problems: [], recording: stats({ recorded: 2, sinkLagMs: 5, dropped: { ...none, disk: 1 } }) }],
      [2, { pid: 20, problems: ['slow'], recording: stats({ recorded: 3, sinkUp: false, redactions: { email: 4 } }) }],
      [3, null],
    ]),
  );
  expect(health.problems).toEqual([expect.stringContaining('process 3 does not answer'), 'process 2: slow']);
  expect(health.recording).toMatchObject({
    ...{ recorded: 5, sinkLagMs: 5, sinkUp: false, diskOk: true, dropped: { ...none, disk: 1 } },
    redactions: { email: 4 },
  });
  expect(health.processes.map(({ number, pid }) => [number, pid])).toEqual([
    [1, 10],
    [2, 20],
  ]);
});

it('a gateway is looked for on the same machine first, and one that listens to its own machine only is for that one', () => {
  const one = (host: string, address: string, isAlive = true, roles = ['gateway']) => ({
    ...{ id: host, roles, host, pid: 1, version: '', address, problems: [], doing: [] },
    ...{ startedAt: new Date(0), seenAt: new Date(0), isAlive },
  });
  const near = one('a', 'http://127.0.0.1:4700');
  const far = one('b', 'http://b:4700');
  expect(gatewayFor('a', [far, near])).toBe('http://127.0.0.1:4700');
  expect(gatewayFor('c', [near, far])).toBe('http://b:4700');
  expect(gatewayFor('c', [near, one('b', 'http://b:4700', false), one('d', 'http://d:1', true, ['api'])])).toBeNull();
});
