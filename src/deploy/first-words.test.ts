import { describe, expect, it } from 'vitest';
import type { Turn } from '../collect/turn.ts';
import { noteFirstWords } from '../store/first-words.ts';
import { noon, turn } from '../store/fixtures.ts';
import type { Window } from '../store/measures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { firstWordsOf, readServed } from './first-words.ts';
import { traffic } from './fixtures.ts';
import { createRelease, reconcile, serveRelease, startRollout } from './reconcile.ts';
import { measureUsers } from './users.ts';

const second = 1000;
const english = 'Where is my parcel? I have been waiting for it since Monday.';
const korean = '안녕하세요, 제 택배가 아직 도착하지 않았습니다.';
const asks = (content: string): Partial<Turn> => ({
  request: {
    messages: [
      { role: 'system', content: 'Sei freundlich und antworte auf Deutsch.' },
      { role: 'user', content },
    ],
  },
});
const windowOf = (release: string): Window => ({
  ...{ agent: 'desk', release, since: noon, until: noon + 60 * second, origin: 'production' },
});

describe('what a user wrote first', () => {
  it('is told by the user’s own words, whichever wire format they came in', () => {
    const found = { language: 'ko', chars: korean.length };
    const german = { role: 'system', content: 'Ich bin der Assistent und du bist nicht allein.' };
    const said = [{ type: 'text', text: korean }];
    const of = (endpoint: Turn['endpoint'], request: Turn['request']) => firstWordsOf(turn({ endpoint, request }));
    expect(of('chat', { messages: [german, { role: 'user', content: korean }] })).toEqual(found);
    expect(of('chat', { messages: [german, { role: 'user', content: said }] })).toEqual(found);
    expect(of('responses', { instructions: german.content, input: korean })).toEqual(found);
    expect(of('responses', { input: [{ role: 'user', content: [{ type: 'input_text', text: korean }] }] })).toEqual(
      found,
    );
    expect(of('messages', { system: german.content, messages: [{ role: 'user', content: korean }] })).toEqual(found);
    expect(of('completions', { prompt: korean })).toEqual(found);
    expect(of('chat', {})).toEqual({ language: null, chars: 0 });
  });

  it('puts users into slices by language and length, once for each conversation', async () => {
    const store = await withStore();
    await writeEntries(store, [
      ...traffic({ release: 'v2', users: 3, resolved: 2, from: noon, words: asks(english) }),
      ...traffic({ release: 'v2', users: 2, resolved: 0, from: noon + second, words: asks(korean) }),
      ...traffic({
        release: 'v2',
        users: 1,
        resolved: 1,
        from: noon + 2 * second,
        words: asks(`${english} `.repeat(20)),
      }),
      // Nobody can tell, and nobody wrote: in no slice of language, and in none of length.
      ...traffic({ release: 'v2', users: 1, resolved: 1, from: noon + 3 * second, words: asks('OK') }),
      ...traffic({ release: 'v2', users: 1, resolved: 1, from: noon + 4 * second, words: { request: {} } }),
    ]);
    const sample = (sum: number, n: number) => ({ n, sum, squares: sum });
    const expected = [
      { dimension: 'language', name: 'en', outcome: sample(3, 4) },
      { dimension: 'language', name: 'ko', outcome: sample(0, 2) },
      { dimension: 'length', name: 'over 1000', outcome: sample(1, 1) },
      { dimension: 'length', name: 'up to 60', outcome: sample(3, 6) },
    ];
    const told = async () => {
      const { slices } = await readServed(store, windowOf('v2'), 'resolved');
      return slices
        .filter(({ dimension }) => dimension === 'language' || dimension === 'length')
        .sort((a, b) => (`${a.dimension} ${a.name}` < `${b.dimension} ${b.name}` ? -1 : 1));
    };
    expect(await told()).toEqual(expected);
    // What was found is kept.
    await noteFirstWords(store, windowOf('v2'), () => {
      throw new Error('It is read again.');
    });
  });

  it('is looked at later where somebody writes to the conversation at that moment', async () => {
    const store = await withStore();
    await writeEntries(store, traffic({ release: 'v2', users: 2, resolved: 2, from: noon, words: asks(korean) }));
    const writer = await store.pool.connect();
    await writer.query(`begin; update pawl.trajectories set turns = turns where id like '%-0'`);
    const of = async () =>
      (await readServed(store, windowOf('v2'), 'resolved')).slices.find(({ name }) => name === 'ko');
    expect((await of())?.outcome.n).toBe(1);
    await writer.query('commit');
    writer.release();
    expect((await of())?.outcome.n).toBe(2);
  });
});

it('a candidate that is better on the whole is taken back where users of one language get less, and the loop tells it', async () => {
  const store = await withStore();
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'local', model: name }, 'ann', noon);
  const [v1, v2] = [await release('v1'), await release('v2')];
  await serveRelease(store, v1, 'ann', noon);
  const settings = { steps: [0.5, 1], holdSeconds: 10, minTurns: 10, minUnits: 20, shadow: { share: 0 } } as const;
  const start = { id: 'r1', agent: 'desk', candidate: v2, report: null, forced: 'a test', actor: 'ann' };
  await startRollout(store, { ...start, settings: { ...settings, steps: [0.5, 1] } }, noon);
  const from = noon + second;
  await writeEntries(store, [
    ...traffic({ release: 'v1', users: 160, resolved: 80, from, words: asks(english) }),
    ...traffic({ release: 'v2', users: 160, resolved: 158, from, words: asks(english) }),
    ...traffic({ release: 'v1', users: 40, resolved: 36, from: from + 5 * second, words: asks(korean) }),
    ...traffic({ release: 'v2', users: 40, resolved: 2, from: from + 5 * second, words: asks(korean) }),
  ]);
  const [moved] = await reconcile(store, { now: noon + 9 * second });
  expect(moved!.decision).toMatchObject({ kind: 'rollback' });
  expect(moved!.decision.reasons.join('\n')).toMatch(
    /resolved, language ko: candidate 0\.050 of 40 users, baseline 0\.900 of 40; worse/,
  );

  const users = await measureUsers(
    store,
    {
      ...{ agent: 'desk', outcome: 'resolved', baseline: 'v1', candidate: 'v2' },
      ...{ collected: { since: noon, until: noon + 60 * second }, rollout: null },
    },
    noon + 60 * second,
  );
  // Nearly all write about as much; that tells nothing that the mean does not.
  expect(users.slices.map(({ slice, before }) => [slice, before?.n])).toEqual([
    ['language en', 160],
    ['language ko', 40],
  ]);
});
