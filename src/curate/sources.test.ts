/** No import floods a dataset: what came in through the gateway and what each named file brought are bounded like users and keys. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { importConversations } from '../collect/import.ts';
import { hashedId } from '../collect/person.ts';
import { feedback } from '../score/feedback.ts';
import { converse } from '../score/fixtures.ts';
import { scoreWindow } from '../score/run.ts';
import { weighted } from '../score/weighted.ts';
import { giveConsent } from '../store/consents.ts';
import { entry, noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { previewWindow } from './run.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-sources-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const secret = 's'.repeat(32);
const animals = [
  'heron',
  'otter',
  'lynx',
  'badger',
  'stork',
  'marten',
  'beaver',
  'plover',
  'weasel',
  'osprey',
  'dipper',
];

test('one source brings at most its share, and a single source all there is', async () => {
  const store = await withStore();
  const user = hashedId('ann', secret);
  await giveConsent(store, 'desk', user, new Date(noon - 1000));
  const said = (animal: string) => [`Where does the ${animal} live?`, `The ${animal} lives by the river.`] as const;
  const line = (animal: string) =>
    JSON.stringify({
      ...{ id: animal, user: 'ann', at: noon, feedback: 'up' },
      messages: said(animal).map((content, i) => ({ role: i === 0 ? 'user' : 'assistant', content })),
    });
  const bring = (source: string | undefined, some: readonly string[]) =>
    importConversations(store, {
      ...{ agent: 'desk', origin: 'production', secret, source, now: new Date(noon), lines: some.map(line) },
    });
  await bring('flood', animals.slice(0, 6));
  const spec = weighted({ votes: [1, feedback()] });
  const window = {
    agent: 'desk',
    spec,
    since: new Date(noon - 1000),
    until: new Date(noon + 60_000),
    now: new Date(noon),
  };
  const settings = { kAnonymity: 1, maxUserShare: 1, nearDuplicate: 1, maxSourceShare: 0.4 };
  const curated = async () => {
    await scoreWindow(store, window);
    const { rows, funnel } = await previewWindow(store, openArtifacts({ home }), { ...window, settings });
    return { rows, left: funnel.find(({ gate }) => gate === 'source share')!.left };
  };
  expect(await curated()).toEqual({ rows: 6, left: {} });

  await bring('crm', animals.slice(6, 8));
  await bring(undefined, animals.slice(8, 9));
  for (const animal of animals.slice(9)) {
    const [question, say] = said(animal);
    const turns = converse(question, [{ say }], { trajectory: animal, user, startedAt: noon + 1 });
    const target = { kind: 'trajectory', id: animal } as const;
    await writeEntries(store, [
      ...turns.map((turn) => ({ kind: 'turn', turn }) as const),
      entry.signal({ identity: animal, user, value: 1, target, at: noon + 2, receivedAt: noon + 2 }),
    ]);
  }
  // Of flood 6, crm 2, unnamed 1 and the gateway 2: three of flood are three of eight, four would be four of nine.
  expect(await curated()).toEqual({ rows: 8, left: { 'over 40% from one source': 3 } });
});
