import { describe, expect, it, test } from 'vitest';
import { makeRelease } from '../deploy/release.ts';
import { RequestError, StoreError } from '../errors.ts';
import { askedEvaluation, createReadyReleases } from './addressed.ts';
import type { ClientKey } from './keys.ts';

const key = (scopes: ClientKey['scopes']): ClientKey => ({
  ...{ id: 'k', agent: 'desk', name: 'shop', origin: 'production', rateLimit: null },
  scopes,
});

describe('who answers an evaluation’s call', () => {
  it('is not asked of calls that are just calls', () => {
    expect(askedEvaluation({ 'x-pawl-user': 'ann' }, key(['call']))).toBeNull();
  });

  it('is for keys with the scope to say', () => {
    expect(askedEvaluation({ 'x-pawl-release': 'v2' }, key(['call', 'evaluate']))).toEqual({
      ...{ name: 'v2', origin: 'evaluation' },
    });
    expect(askedEvaluation({ 'x-pawl-origin': 'evaluation' }, key(['evaluate']))).toEqual({
      ...{ name: null, origin: 'evaluation' },
    });
  });

  it('is not asked of a judge with a key of its own, and a judge is told from an evaluation', () => {
    const judges = { 'x-pawl-origin': 'judge' };
    expect(askedEvaluation(judges, { ...key(['call']), origin: 'judge' })).toBeNull();
    expect(askedEvaluation(judges, key(['call', 'evaluate']))).toEqual({ name: null, origin: 'judge' });
  });

  test.each([
    [{ 'x-pawl-origin': 'judge' }, ['call'], 403],
    [{ 'x-pawl-release': 'v2' }, ['call'], 403],
    [{ 'x-pawl-origin': 'evaluation' }, ['call', 'outcomes'], 403],
    [{ 'x-pawl-origin': 'simulation' }, ['evaluate'], 400],
    [{ 'x-pawl-release': '../v2' }, ['evaluate'], 400],
    [{ 'x-pawl-release': 'v'.repeat(200) }, ['evaluate'], 400],
  ] as const)('%j with %j is refused with %i', (headers, scopes, status) => {
    expect(() => askedEvaluation(headers, key(scopes))).toThrow(expect.objectContaining({ status }));
  });
});

const v2 = makeRelease({ agent: 'desk', name: 'v2', upstream: 'engine', model: 'm' }, 0);

describe('a release that is asked for by name', () => {
  it('is looked up and made ready once, whoever asks, and again after a while', async () => {
    const done: string[] = [];
    let now = 0;
    const releases = createReadyReleases({
      read: async (_, name) => {
        done.push(`read ${name}`);
        return name === 'v2' ? v2 : null;
      },
      prepare: async ({ name }) => void done.push(`prepare ${name}`),
      keptMs: 1000,
      now: () => now,
    });
    expect(await Promise.all([releases.find('desk', 'v2'), releases.find('desk', 'v2')])).toEqual([v2, v2]);
    now = 999;
    await releases.find('desk', 'v2');
    expect(done).toEqual(['read v2', 'prepare v2']);
    now = 2000;
    await releases.find('desk', 'v2');
    expect(done).toHaveLength(4);
  });

  it('is not there, and is looked for again the next time', async () => {
    let asked = 0;
    const read = async () => {
      asked++;
      return null;
    };
    const releases = createReadyReleases({ read, prepare: async () => {} });
    for (let i = 0; i < 2; i++)
      await expect(releases.find('desk', 'v9')).rejects.toMatchObject({ status: 404, code: 'release_not_found' });
    expect(asked).toBe(2);
  });

  it('may be slow: whoever waits long enough is told to come back, and finds it ready then', async () => {
    let ready = () => {};
    const loading = new Promise<void>((resolve) => {
      ready = resolve;
    });
    const releases = createReadyReleases({ read: async () => v2, prepare: () => loading, waitMs: 10 });
    await expect(releases.find('desk', 'v2')).rejects.toMatchObject({ status: 503, retryAfterMs: 5000 });
    ready();
    expect(await releases.find('desk', 'v2')).toBe(v2);
  });

  test.each([
    ['the database is away', new StoreError('gone', { retryable: true }), 503],
    ['the model cannot be loaded', null, 503],
  ])('says so when %s', async (_, trouble, status) => {
    const releases = createReadyReleases({
      read: async () => {
        if (trouble !== null) throw trouble;
        return v2;
      },
      prepare: () => Promise.reject(new Error('out of memory')),
    });
    const refusal = await releases.find('desk', 'v2').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(RequestError);
    expect(refusal).toMatchObject({ status });
  });
});
