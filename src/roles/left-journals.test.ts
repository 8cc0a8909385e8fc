import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/pawl.ts';
import { startRecorder } from '../collect/recorder.ts';
import { parseConfig } from '../config.ts';
import { signal } from '../store/fixtures.ts';
import { withStore } from '../store/test-store.ts';
import type { Ground } from './ground.ts';
import { childHome, deliverLeft, leftHomes } from './left-journals.ts';

it('journals that nobody else would read again are found by the names of their folders', () => {
  const names = ['gateway-1', 'gateway-2', 'gateway-3', 'journal', 'gateway-x'];
  expect(leftHomes('/h', names, 2)).toEqual(['/h', '/h/gateway-3']);
  expect(leftHomes('/h', names, null)).toEqual(['/h/gateway-1', '/h/gateway-2', '/h/gateway-3']);
});

it('a gateway alone writes what one of several processes had left in its journal', async () => {
  const store = await withStore();
  const home = mkdtempSync(join(tmpdir(), 'pawl-left-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const secret = 's'.repeat(32);
  const second = await startRecorder({ home: childHome(home, 2), databaseUrl: 'postgres://127.0.0.1:1/away', secret });
  expect(await second.signal({ kind: 'signal', signal: signal() })).toBe('journalled');
  await second.close();

  const config = parseConfig({ home, databaseUrl: store.url }, {}, home);
  const log = pino({ level: 'silent' });
  const left = deliverLeft({ config, log, stopping: () => false } as Ground, null, secret);
  const { rows } = await until(
    () => store.pool.query('select agent from pawl.signals'),
    ({ rows: found }) => found.length > 0,
  );
  expect(rows).toHaveLength(1);
  await left.close();
});
