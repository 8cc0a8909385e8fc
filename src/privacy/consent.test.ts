import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { previewWindow } from '../curate/run.ts';
import { verifyAudit } from '../deploy/audit.ts';
import { converse, deskReward } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { readAudit } from '../store/audit.ts';
import { noon } from '../store/fixtures.ts';
import { createKey } from '../store/keys.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { sayConsent } from './consent.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-consent-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('walls keep regions and tenants apart until everybody agreed to exactly that, and the audit log has each word once', async () => {
  const store = await withStore();
  const artifacts = openArtifacts({ home });
  const before = new Date(noon - 1000);
  const say = (
    user: string,
    purpose: 'learn' | 'transfer' | 'tenants',
    says: 'given' | 'withdrawn' = 'given',
    at = before,
  ) => sayConsent(store, { agent: 'desk', user, purpose, says, actor: 'test', at });
  const keys = new Map<string, string>();
  for (const [name, region, tenant] of [
    ['eu', 'eu', null],
    ['us', 'us', null],
    ['acme', 'eu', 'acme'],
  ] as const) {
    const { key } = await createKey(store, { agent: 'desk', name, region, tenant });
    keys.set(name, key.id);
  }
  for (const [i, name] of [...keys.keys()].entries()) {
    await say(`user-${name}`, 'learn');
    const turns = converse(`Question ${name}?`, [{ say: 'Yes.' }], {
      ...{ trajectory: name, user: `user-${name}`, clientKey: keys.get(name)!, startedAt: noon + i * 10_000 },
    });
    await writeEntries(
      store,
      turns.map((turn) => ({ kind: 'turn' as const, turn })),
    );
  }
  const window = { since: before, until: new Date(noon + 60_000), now: new Date(noon + 60_000) };
  const of = { agent: 'desk', spec: deskReward, ...window };
  await scoreWindow(store, of);
  const kept = async (walls: { region?: string; tenant?: string }) => {
    const settings = { minMeasured: 0, minScore: 0, maxUserShare: 1, kAnonymity: 1, ...walls };
    const { funnel } = await previewWindow(store, artifacts, { ...of, settings });
    return funnel.filter(({ gate }) => gate === 'region' || gate === 'tenant').map(({ passed }) => passed);
  };
  // Nobody said which region this agent is of, and all three keys have one.
  expect(await kept({})).toEqual([0, 0]);
  expect(await kept({ region: 'eu' })).toEqual([2, 1]);
  expect(await kept({ region: 'eu', tenant: 'acme' })).toEqual([2, 1]);
  await say('user-us', 'transfer');
  await say('user-us', 'transfer');
  expect(await kept({ region: 'eu' })).toEqual([3, 2]);
  await say('user-acme', 'tenants');
  expect(await kept({ region: 'eu' })).toEqual([3, 3]);
  await say('user-us', 'transfer', 'withdrawn', new Date(noon + 50_000));
  expect(await kept({ region: 'eu' })).toEqual([2, 2]);

  const events = (await readAudit(store, { limit: 100 })).map(({ event, details }) => `${event} ${details}`);
  expect(events.filter((event) => event.includes('transfer')).sort()).toEqual([
    'consent-given {"purpose":"transfer"}',
    'consent-withdrawn {"purpose":"transfer"}',
  ]);
  expect(await verifyAudit(store)).toMatchObject({ rows: 6, problem: null });
});
