import { describe, expect, test } from 'vitest';
import { converse, trajectory } from '../score/fixtures.ts';
import type { Score } from '../score/score.ts';
import { noon } from '../store/fixtures.ts';
import { noWalls } from '../store/walls.ts';
import type { Passed } from './candidates.ts';
import { waitingFor } from './fixtures-waiting.ts';
import { countFunnel } from './funnel.ts';
import { gateNames, passing, type Seen, seenGates, setGates, type Whole, wholeGates } from './gates.ts';
import { patternOf } from './k-anonymity.ts';
import { hashWord, signatureOf } from './minhash.ts';
import { gate } from './own-gate.ts';
import { makeRow } from './row.ts';
import { type SettingsInput, settings } from './settings.ts';
import { shareLimit } from './shares.ts';

const set = settings.parse({});
const turns = converse('Where is order 7?', [
  { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] },
  { say: 'It was sent.' },
]);
const score: Score & { total: number } = {
  agent: 'desk',
  trajectory: 'conversation-1',
  day: '2026-05-20',
  spec: 's',
  evidence: 'e',
  total: 1,
  measured: 1,
  parts: {},
  turns: [],
  at: noon,
};
const seen = (fields: Partial<Seen> = {}): Seen => ({
  ...{ trajectory: trajectory(), standing: 'given', walls: noWalls, shifted: false, score },
  ...fields,
});
const scored = (of: typeof turns, fields: Partial<Score> = {}) => ({
  ...score,
  turns: of.map(({ id }) => ({ turn: id, value: null, parts: {} })),
  ...fields,
});
const whole = (of = turns, fields: Partial<Whole> = {}): Whole => ({
  ...seen({ score: scored(of) }),
  trajectory: trajectory({ turns: of.length }),
  turns: of,
  made: makeRow(of, score),
  ...fields,
});
/** The gate that stops it, and why; null when it passes all. */
const stopped = (candidate: Whole, on: 'production' | 'simulation' = 'production', given: SettingsInput = {}) => {
  const set = settings.parse({ ...given, on });
  for (const { name, reason } of [...seenGates, ...wholeGates(set)]) {
    const why = reason(candidate, set);
    if (why !== null) return `${name}: ${why}`;
  }
  return null;
};
const broken = (k: number, fields: Partial<(typeof turns)[number]>) =>
  turns.map((turn, i) => (i === k ? { ...turn, ...fields } : turn));
const finish = (finishReason: string | null) => broken(1, { choices: [{ ...turns[1]!.choices[0]!, finishReason }] });

describe('the gates', () => {
  test('let a good conversation of a consenting user through', () => {
    expect(stopped(whole())).toBeNull();
  });

  test.each([
    ['shadow traffic', { trajectory: trajectory({ origin: 'shadow' }) }, 'origin: origin shadow'],
    ['a judge’s calls', { trajectory: trajectory({ origin: 'judge' }) }, 'origin: origin judge'],
    ['nobody’s consent', { trajectory: trajectory({ consent: 'unknown' }) }, 'consent: not given'],
    ['somebody who said nothing', { standing: 'unknown' }, 'consent: not given'],
    ['an earlier withdrawal', { trajectory: trajectory({ consent: 'withdrawn' }) }, 'consent: withdrawn before'],
    ['a later withdrawal', { standing: 'withdrawn' }, 'consent: withdrawn since'],
    ['consent given anew after a withdrawal', { standing: 'later' }, 'consent: withdrawn since'],
    ['a key whose scores jumped', { shifted: true }, 'shifts: held for a person: scores of its key jumped'],
    ['no score', { score: null }, 'score: not scored'],
    ['nothing measured', { score: { ...score, total: null, measured: 0 } }, 'score: nothing measured'],
    ['a score from little', { score: { ...score, measured: 0.49 } }, 'score: too little measured'],
    ['a low score', { score: { ...score, total: 0.69 } }, 'score: below 0.7'],
    ['a failed turn', { trajectory: trajectory({ errors: 1 }) }, 'errors: a turn failed'],
    ['a turn that has not arrived', { trajectory: trajectory({ turns: 3 }) }, 'complete: turns are missing'],
  ] as const)('stop %s', (_, fields, expected) => {
    expect(stopped(whole(turns, fields))).toBe(expected);
  });

  test('pass exactly what the limits allow', () => {
    expect(stopped(whole(turns, { score: scored(turns, { total: 0.7, measured: 0.5 }) }))).toBeNull();
    expect(stopped(whole(broken(0, { latencyMs: 30_000 })))).toBeNull();
    expect(stopped(whole(broken(0, { latencyMs: 30_001 })))).toBe('latency: an answer over 30 s');
  });

  test('stop what did not end well', () => {
    expect(stopped(whole(broken(1, { status: 'disconnected' })))).toBe('errors: a turn was broken off');
    expect(stopped(whole(finish('length')))).toBe('complete: cut at the token limit');
    expect(stopped(whole(finish(null)))).toBe('complete: no proper end');
    expect(stopped(whole(turns.slice(0, 1)))).toBe('complete: ends in a tool call');
    expect(stopped(whole(turns, { score: scored(turns.slice(1)) }))).toBe('complete: went on after it was scored');
    expect(stopped(whole(broken(1, { choices: [] })))).toBe('complete: a turn without an answer');
    expect(stopped(whole(broken(1, { endpoint: 'completions' })))).toBe('complete: not a chat');
  });

  test('stop a row in which redaction finds something now', () => {
    const leak = converse('I am ann@example.com and my card is 4111 1111 1111 1111', [{ say: 'Thanks.' }]);
    expect(stopped(whole(leak))).toBe('redaction: still holds card and email');
    const hidden = converse('Hello', [
      { say: [['get_order', '{"id":7}']], results: ['{"mail":"ann\\u0040example.com"}'] },
      { say: 'Hi.' },
    ]);
    expect(stopped(whole(hidden))).toBe('redaction: still holds email');
  });

  test('stop what is on the other side of a wall, unless everybody agreed that it crosses', () => {
    const from = (fields: Partial<Whole['walls']>) => whole(turns, { walls: { ...noWalls, ...fields } });
    expect(stopped(from({ regions: ['eu'] }), 'production', { region: 'eu' })).toBeNull();
    const region = 'region: of another region, without consent to transfer';
    expect(stopped(from({ regions: ['eu'] }))).toBe(region);
    expect(stopped(from({ regions: ['eu', 'us'] }), 'production', { region: 'eu' })).toBe(region);
    expect(stopped(from({ regions: [null] }), 'production', { region: 'eu' })).toBe(region);
    expect(stopped(from({ regions: ['us'], mayTransfer: true }), 'production', { region: 'eu' })).toBeNull();
    const tenant = 'tenant: of another tenant, without consent to cross';
    expect(stopped(from({ tenants: ['acme'], mayTransfer: true }))).toBe(tenant);
    expect(stopped(from({ tenants: ['acme'], mayCrossTenants: true }))).toBeNull();
  });

  test('stop what is confidential, unless it is to be kept inside', () => {
    const confidential = { phrases: ['Project Heron'], patterns: ['\\bcontract no\\. \\d+'] };
    const of = (question: string) => whole(converse(question, [{ say: 'Yes.' }]));
    const why = (question: string, keep?: 'inside') =>
      stopped(of(question), 'production', { confidential: { ...confidential, ...(keep && { keep }) } });
    expect(why('Is project HERON late?')).toBe('confidentiality: confidential');
    expect(why('See Contract No. 17')).toBe('confidentiality: confidential');
    expect(why('Herons are birds')).toBeNull();
    expect(why('Is project HERON late?', 'inside')).toBeNull();
  });

  test('hold out whole users, more of them with a larger share, always the same', () => {
    const held = (share: number) =>
      Array.from({ length: 200 }, (_, i) => `user-${i}`).filter(
        (user) =>
          stopped(whole(turns.map((turn) => ({ ...turn, user }))), 'production', { holdOut: share }) ===
          'held out: kept to measure on',
      );
    expect(held(0)).toEqual([]);
    const [few, more] = [held(0.1), held(0.3)];
    expect(few.length).toBeGreaterThan(5);
    expect(more.length).toBeGreaterThan(few.length);
    expect(few.every((user) => more.includes(user))).toBe(true);
  });

  test('gates of one’s own come after the others', () => {
    const gates = [gate('polite', ({ score: total }) => (total < 2 ? 'too rude' : null))];
    expect(stopped(whole(), 'production', { gates })).toBe('polite: too rude');
    expect(gateNames(settings.parse({ gates })).slice(12, 15)).toEqual(['held out', 'polite', 'k-anonymity']);
  });

  test('learning in simulation takes simulated traffic only, without consent', () => {
    const simulated = trajectory({ origin: 'simulation', consent: 'unknown', user: null });
    expect(stopped(whole(turns, { trajectory: simulated, standing: 'unknown' }), 'simulation')).toBeNull();
    expect(stopped(whole(turns, { trajectory: simulated, standing: 'later' }), 'simulation')).toBeNull();
    expect(stopped(whole(turns, { trajectory: simulated, standing: 'withdrawn' }), 'simulation')).toBe(
      'consent: withdrawn since',
    );
    expect(stopped(whole(), 'simulation')).toBe('origin: origin production');
  });
});

describe('the gates over all', async () => {
  const named = (name: string) => setGates.find((one) => one.name === name)!;
  const [duplicates, userShare] = [named('duplicates'), named('user share')];
  const passed = (id: string, fields: Partial<Passed> = {}): Passed => ({
    ...{ trajectory: id, day: '2026-05-20', users: [], keys: [], sources: [], tenants: [], taskType: null },
    ...{ score: 1, fingerprint: id, question: patternOf(id), wording: signatureOf([hashWord(id)]) },
    ...fields,
  });
  const asked = async (of: (typeof setGates)[number], all: readonly Passed[], seed = 1, given: SettingsInput = {}) => {
    const rules = settings.parse({ maxUserShare: 0.5, ...given });
    const waiting = await waitingFor(all, rules, seed);
    const { kept, left, reason } = await passing(of, waiting.ranked(), waiting, rules);
    return { kept: [...kept].map((number) => all[number]!), left: left.length, reason };
  };
  const kept = async (...args: Parameters<typeof asked>) =>
    (await asked(...args)).kept.map(({ trajectory: id }) => id).sort();

  test('keep the best of what says the same, whatever came first', async () => {
    const all = [
      passed('a', { fingerprint: 'x', score: 0.8 }),
      passed('b', { fingerprint: 'x', score: 0.9 }),
      passed('c'),
    ];
    expect(await kept(duplicates, all)).toEqual(['b', 'c']);
    expect(await kept(duplicates, all.reverse())).toEqual(['b', 'c']);
  });

  test('among equals the seed draws, and order does not', async () => {
    const all = Array.from({ length: 10 }, (_, i) => passed(`c${i}`, { fingerprint: 'same' }));
    const draw = (of: Passed[]) =>
      Promise.all(Array.from({ length: 20 }, async (_, seed) => (await kept(duplicates, of, seed))[0]!));
    const drawn = await draw(all);
    expect(await draw([...all].reverse())).toEqual(drawn);
    expect(new Set(drawn).size).toBeGreaterThan(1);
  });

  test('the same conversations recorded again under other ids are drawn alike', async () => {
    const drawn = async (run: string, seed: number) => {
      const all = Array.from({ length: 10 }, (_, i) =>
        passed(`${run}-${i}`, { users: [i < 8 ? 'ann' : 'bob'], fingerprint: `f${i}` }),
      );
      return (await asked(userShare, all, seed)).kept.map(({ fingerprint }) => fingerprint);
    };
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    const first = await Promise.all(seeds.map((seed) => drawn('first', seed)));
    expect(await Promise.all(seeds.map((seed) => drawn('again', seed)))).toEqual(first);
    expect(new Set(first.map(String)).size).toBeGreaterThan(1);
  });

  test('allow one user as many rows as are the given share of what is kept', () => {
    // ann has 8, three others 1 each: with 3 of ann’s there are 6 rows, and 3 is half of them. 4 of 7 would be more.
    expect(shareLimit([8, 1, 1, 1], 0.5)).toBe(3);
    expect(shareLimit([8, 1, 1, 1], 1)).toBe(8);
    expect(shareLimit([5, 5], 0.5)).toBe(5);
    expect(shareLimit([5], 0.05)).toBe(1);
    expect(shareLimit([40, ...Array<number>(71).fill(1)], 0.29)).toBe(29); // 29 of 100
    expect(shareLimit([], 0.05)).toBe(1);
  });

  test('keep what at least k people asked the like of, also when they got the same answer', async () => {
    const says = (question: string, ...people: string[]) =>
      people.map((user) => passed(`${question} ${user}`, { question: patternOf(question), users: [user] }));
    const all = [...says('Where is my order 7?', 'a', 'b', 'c'), ...says('the heron engine', 'a', 'a2')];
    const gate = named('k-anonymity');
    const names = async (k: number) => (await kept(gate, all, 1, { kAnonymity: k })).map((id) => id.split(' ')[0]);
    expect(await names(3)).toEqual(['Where', 'Where', 'Where']);
    expect(await names(4)).toEqual([]);
    expect(await names(1)).toHaveLength(5);
    expect(await asked(gate, all, 1, { kAnonymity: 3 })).toMatchObject({
      left: 2,
      reason: 'fewer than 3 people asked the like',
    });
  });

  test('bound what comes with one key, of one tenant and of one task type, where there is more than one', async () => {
    const rows = (n: number, fields: (i: number) => Partial<Passed>) =>
      Array.from({ length: n }, (_, i) => passed(`r${i}`, fields(i)));
    const share = { maxKeyShare: 0.6, maxTenantShare: 0.6, maxTypeShare: 0.6 };
    // Three of eight against one: with 3 of 5 the larger has 60%.
    const keyed = rows(10, (i) => ({ keys: [i < 8 ? 'big' : 'small'] }));
    expect(await kept(named('key share'), keyed, 1, share)).toHaveLength(5);
    expect(await kept(named('key share'), keyed.slice(0, 8), 1, share)).toHaveLength(8);
    const owned = rows(10, (i) => ({ tenants: i < 8 ? ['acme'] : [] }));
    expect(await kept(named('tenant share'), owned, 1, share)).toHaveLength(10);
    const typed = rows(10, (i) => ({ taskType: i < 8 ? 'refund' : null }));
    expect(await kept(named('balance'), typed, 1, share)).toHaveLength(5);
    expect(await kept(named('balance'), typed, 1)).toHaveLength(10);
  });

  test('keep a user’s best rows, and limit nobody who has no id', async () => {
    const ann = Array.from({ length: 8 }, (_, i) => passed(`ann${i}`, { users: ['ann'], score: i / 8 }));
    const others = ['x', 'y', 'z'].map((id) => passed(id));
    expect(await kept(userShare, [...ann, ...others])).toEqual(['ann5', 'ann6', 'ann7', 'x', 'y', 'z']);
  });

  test('a conversation of several counts for each of them', async () => {
    const both = Array.from({ length: 8 }, (_, i) => passed(`both${i}`, { users: [`guest${i}`, 'ann'], score: i / 8 }));
    const others = ['x', 'y', 'z'].map((id) => passed(id));
    expect(await kept(userShare, [...both, ...others])).toEqual(['both5', 'both6', 'both7', 'x', 'y', 'z']);
  });
});

test('a funnel adds up from the first gate to the last', () => {
  const funnel = countFunnel(['one', 'two']);
  for (const reason of ['b', null, 'a', 'b', null]) funnel.add('one', reason);
  for (const reason of [null, 'c']) funnel.add('two', reason);
  expect(funnel.steps()).toEqual([
    { gate: 'one', entered: 5, passed: 2, left: { a: 1, b: 2 } },
    { gate: 'two', entered: 2, passed: 1, left: { c: 1 } },
  ]);
  expect(() => funnel.add('three', null)).toThrow(/'three' is not a gate/);
  expect(gateNames(set)).toHaveLength(21);
});
