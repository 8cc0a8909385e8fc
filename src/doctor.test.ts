import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodeName, encodeRecord } from './collect/journal-record.ts';
import { bytes, checkNode, diagnose, judgeClock, judgeDisk, judgeRewards, missingPackages } from './doctor.ts';
import { withStore } from './store/test-store.ts';

test('Node older than 20.19 does not do', () => {
  expect(['18.20.0', '20.18.3', '20.19.0', '22.0.0'].map((v) => checkNode(v).state)).toEqual([
    'fail',
    'fail',
    'ok',
    'ok',
  ]);
});

test('packages that are missing or of another version are named; optional and development ones may be absent', () => {
  const wanted = {
    '': { version: '1' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/@s/b': { version: '2.0.0' },
    'node_modules/dev': { version: '1.0.0', dev: true },
    'node_modules/other-platform': { version: '1.0.0', optional: true },
  };
  expect(missingPackages(wanted, { 'node_modules/a': { version: '0.9.0' } })).toEqual(['a', '@s/b']);
});

test('a disk with less room than the journal may take is worth a word, a full one is a fault', () => {
  const gigabyte = 1024 ** 3;
  expect([10 * gigabyte, gigabyte, 0.1 * gigabyte].map((free) => judgeDisk(free, 4 * gigabyte).state)).toEqual([
    'ok',
    'warn',
    'fail',
  ]);
});

test('clocks that differ by more than a few seconds are worth a word', () => {
  expect([0, -4000, 5000, -60_000].map((ahead) => judgeClock(ahead).state)).toEqual(['ok', 'ok', 'warn', 'warn']);
  expect(judgeClock(-60_000).found).toContain('60 s behind');
});

test('bytes are said as people say them', () => {
  expect([0, 512, 1536, 20 * 1024 ** 3].map(bytes)).toEqual(['0 B', '512 B', '1.5 KB', '20 GB']);
});

describe('the whole examination', () => {
  let folder: string;
  let upstream: Server;
  let url: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pawl-doctor-'));
    upstream = createServer((request, response) => {
      response.statusCode = request.headers.authorization === 'Bearer wrong' ? 401 : 200;
      response.end('{"data":[]}');
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  });
  afterAll(() => {
    upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const examine = async (env: NodeJS.ProcessEnv) => {
    const checks = await diagnose({}, { PAWL_UPSTREAM: url, PAWL_PORT: '0', ...env }, folder);
    return { checks, of: (name: string) => checks.find((check) => check.name === name) };
  };

  test('finds nothing wrong before the first start, and makes nothing', async () => {
    const { checks } = await examine({});
    expect(checks.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(checks.map(({ name }) => name)).toContain('upstream default');
    expect(existsSync(join(folder, '.pawl'))).toBe(false);
  });

  test('knows a living database: version, schema, clock', async () => {
    const store = await withStore();
    const { of } = await examine({ DATABASE_URL: store.url });
    expect(of('database')).toMatchObject({
      state: 'ok',
      found: expect.stringContaining(`PostgreSQL ${store.serverVersion}`),
    });
    expect(of('schema')).toMatchObject({ state: 'ok', found: expect.stringContaining('up to date') });
    expect(of('clock')?.state).toBe('ok');
    await store.pool.query(`insert into pawl.losses (source, reason, count) values ('journal', 'full', 3)`);
    expect((await examine({ DATABASE_URL: store.url })).of('losses')?.found).toContain('3 × full');
    await store.pool.query('drop schema pawl cascade');
    expect((await examine({ DATABASE_URL: store.url })).of('schema')?.found).toMatch(/to run$/);
  });

  test('tries the place of artifacts without a trace, and says what is wrong with it', async () => {
    const place = join(folder, 'kept');
    expect((await examine({ PAWL_ARTIFACTS: place })).of('artifacts')).toMatchObject({
      ...{ state: 'warn', wayOut: expect.stringContaining('mount it') },
    });
    mkdirSync(place);
    expect((await examine({ PAWL_ARTIFACTS: place })).of('artifacts')?.found).toMatch(
      /can be written, read and cleared/,
    );
    expect(readdirSync(place)).toEqual([]);
    rmSync(place, { recursive: true });
    writeFileSync(place, 'a file');
    expect((await examine({ PAWL_ARTIFACTS: place })).of('artifacts')).toMatchObject({ state: 'fail' });
    rmSync(place);
  });

  test('says that the user’s database does not answer, without its password', async () => {
    const report = await examine({ DATABASE_URL: 'postgres://pawl:hunter2@127.0.0.1:1/pawl' });
    expect(report.of('database')).toMatchObject({ state: 'fail', found: expect.stringContaining('127.0.0.1:1') });
    expect(JSON.stringify(report.checks)).not.toContain('hunter2');
  });

  test('says which upstream is away or refuses the key', async () => {
    const away = await examine({ PAWL_UPSTREAM: 'http://127.0.0.1:1/v1' });
    expect(away.of('upstream default')).toMatchObject({
      state: 'fail',
      found: expect.stringContaining('ECONNREFUSED'),
    });
    const refused = await examine({ PAWL_UPSTREAM_KEY: 'wrong' });
    expect(refused.of('upstream default')).toMatchObject({
      state: 'fail',
      found: expect.stringContaining('refuses the key'),
    });
  });

  test('says that the port belongs to somebody else', async () => {
    const report = await examine({ PAWL_PORT: new URL(url).port });
    expect(report.of('port')).toMatchObject({ state: 'fail', wayOut: expect.stringContaining('PAWL_PORT') });
  });

  test('sees the backlog and the damage in the journal, and what the database refused', async () => {
    const journal = join(folder, '.pawl', 'journal');
    mkdirSync(journal, { recursive: true });
    const id = '01234567-89ab-4cde-8f01-23456789abcd';
    const name = encodeName(id);
    const record = encodeRecord('{"kind":"turn"}');
    const torn = record.subarray(0, record.length - 3);
    const put = (segment: number, offset: number) =>
      writeFileSync(join(journal, 'cursor.json'), JSON.stringify({ segment, offset, id }));
    writeFileSync(join(journal, '000000000001.journal'), Buffer.concat([name, record, record]));
    put(1, 10_000);
    expect((await examine({})).of('journal')).toMatchObject({
      state: 'warn',
      found: expect.stringMatching(/names byte 10000 of segment 1, which has only \d+: everything .* is read again/),
    });
    put(1, name.length + record.length);
    expect((await examine({})).of('journal')).toMatchObject({
      state: 'warn',
      found: `${record.length} B wait for the database`,
    });
    writeFileSync(join(journal, '000000000002.journal'), torn);
    expect((await examine({})).of('journal')?.found).toBe(`1 damaged stretches in ${2 * record.length - 3} B waiting`);
    writeFileSync(join(journal, 'rejected.jsonl'), '{}\n{}\n');
    expect((await examine({})).of('journal')?.found).toContain('2 entries were refused');
  });

  test('a wrong setting is named and ends the examination', async () => {
    const { checks } = await examine({ PAWL_PORT: '70000' });
    expect(checks.at(-1)).toMatchObject({ name: 'settings', state: 'fail', found: expect.stringContaining('port') });
  });
});

describe('the reward', () => {
  const of = (spearman: number | null, state: string) => [
    { agent: 'desk', result: { total: { part: null, labels: 40, spearman, state }, parts: [] } },
  ];

  test('is worth a warning where people disagree with it, and nothing where nobody labelled', () => {
    expect(judgeRewards(of(0.41, 'alarm'))).toMatchObject([
      { name: 'reward desk', state: 'warn', found: expect.stringMatching(/0\.41 with 40/) },
    ]);
    expect(judgeRewards(of(0.9, 'ok'))).toMatchObject([{ state: 'ok' }]);
    expect(judgeRewards(of(null, 'unmeasured'))).toEqual([]);
    expect(judgeRewards([{ agent: 'desk', result: 'odd' }])).toEqual([]);
  });
});
