import { expect, test } from 'vitest';
import { piiSettings } from '../collect/redact/settings.ts';
import { surveyPii } from '../privacy/pii.ts';
import { converse } from '../score/fixtures.ts';
import { giveConsent } from '../store/consents.ts';
import { noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { nameKey, openLooks } from './looks.ts';
import { fewestPeople, ownAmong, readOwnNames } from './own-names.ts';

test('a name is the agent’s own from a share of its people on, and from five', () => {
  const counts = new Map([
    ['everywhere', 10],
    ['half', 5],
    ['some', 4],
    ['one', 1],
  ]);
  expect([...ownAmong(counts, 10, 0.5)]).toEqual(['everywhere', 'half']);
  expect([...ownAmong(counts, 11, 0.5)]).toEqual(['everywhere']);
  expect([...ownAmong(counts, 10, 0.1)]).toEqual(['everywhere', 'half']);
  expect([...ownAmong(new Map([['a', fewestPeople - 1]]), fewestPeople - 1, 0.5)]).toEqual([]);
});

test('names that stand in most people’s instructions are the agent’s own, however often one person came, and whatever else is filled in', async () => {
  const store = await withStore();
  const people = ['Karen Jones', 'Robert Hayes', 'Laura Smith', 'Daniel Brown', 'Emily Clark', 'Marcus Moore'];
  for (const [i] of people.entries()) await giveConsent(store, 'desk', `user-${i}`, new Date(noon - 1000));
  const told = (user: number, n: number, system: string, agreed = true) =>
    converse('Where is it?', [{ say: 'It was sent.' }], {
      ...{ trajectory: `talk-${user}-${n}`, user: agreed ? `user-${user}` : `stranger-${user}`, startedAt: noon + n },
    }).map(({ request, ...turn }) => ({
      kind: 'turn' as const,
      turn: {
        ...turn,
        request: { ...request, messages: [{ role: 'system', content: system }, ...(request.messages as object[])] },
      },
    }));
  await writeEntries(store, [
    ...people.flatMap((name, i) =>
      told(
        i,
        i,
        `You are the desk of Sarah Miller.\n\nThe caller is ${name}. Ask ${i < 3 ? 'Tom Baker' : 'Ann Cooper'}.`,
      ),
    ),
    // One person twenty times, and many who never agreed, prove nothing.
    ...Array.from({ length: 20 }, (_, n) => told(0, 100 + n, 'The caller is Karen Jones.')).flat(),
    ...Array.from({ length: 20 }, (_, n) => told(n, 200 + n, 'The caller is Karen Jones.', false)).flat(),
  ]);
  const window = { agent: 'desk', since: new Date(noon - 1000), until: new Date(noon + 1000) };
  const own = async (share: number) => {
    let names: ReadonlySet<string> = new Set();
    await openLooks(piiSettings.parse({}), async (namesIn) => {
      names = await readOwnNames(store, { ...window, on: 'production', share }, namesIn);
      return names;
    });
    return ['Sarah Miller', 'Tom Baker', ...people].filter((name) => names.has(nameKey(name)));
  };
  // Of user-0 one of 21 conversations is drawn; five of the other people have the company's name.
  expect(await own(0.5)).toEqual(['Sarah Miller']);
  expect(await own(0)).toEqual(['Sarah Miller']); // of three people each, and fewer than five are nobody's measure

  const { found } = await surveyPii(store, { ...window, pii: piiSettings.parse({ ownFrom: 0.5 }) });
  const all = await surveyPii(store, { ...window, pii: piiSettings.parse({ ownFrom: 0 }) });
  expect(found?.person?.where.system).toBe(6 * 2 + 40); // the caller and who is to be asked, not the company’s
  expect(all.found?.person).toBeUndefined();
});
