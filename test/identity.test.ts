/** Whose a conversation is, through real processes: several homes on one database, several people in one conversation, keys. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashedId } from '../src/collect/person.ts';
import { trustPerDay, votersPerDay } from '../src/gateway/signal-limits.ts';
import { giveConsent, readConsent } from '../src/store/consents.ts';
import { entry, noon } from '../src/store/fixtures.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { installationSecret } from '../src/store/secret.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { readTurn } from '../src/store/turns.ts';
import { bareEnvironment } from './bare-environment.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const bin = fileURLToPath(new URL('../bin/pawl.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'pawl-identity-'));
const [homeA, homeB] = [join(folder, 'a'), join(folder, 'b')];
let upstream: TestUpstream;
afterAll(async () => {
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeAll(async () => {
  // Its users are real ones: the demo's agent learns from simulated ones.
  writeFileSync(join(folder, 'pawl.config.ts'), `export default { agents: [{ name: 'support-desk' }] };\n`);
  upstream = await startUpstream();
});

async function command(args: readonly string[], env: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [bin, ...args],
      { cwd: folder, env: { ...bareEnvironment(), PAWL_PORT: '0', ...env } },
      (error, out, err) =>
        error === null ? resolve(out) : reject(new Error(`pawl ${args.join(' ')}: ${err}`, { cause: error })),
    );
  });
}

const post = async (pawl: PawlProcess, path: string, body: object, key = pawl.key) => {
  const response = await fetch(`${pawl.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as { error?: { message: string } },
  };
};
const say = (pawl: PawlProcess, trajectory: string, user: string | null, text: string) =>
  post(pawl, `/t/${trajectory}${user === null ? '' : `/u/${encodeURIComponent(user)}`}/v1/chat/completions`, {
    model: 'echo',
    messages: [{ role: 'user', content: text }],
  });
const recorded = (store: Store, id: string, turns: number, signals = 0) =>
  until(
    () => readTrajectory(store, id),
    (found) => (found?.turns.length ?? 0) >= turns && found!.signals.length >= signals,
  );

describe('two homes on one database', () => {
  let database: Store;
  let pawl: PawlProcess;
  beforeAll(async () => {
    database = await openStore({ home: join(folder, 'database'), volatile: true });
    pawl = await startPawl({ DATABASE_URL: database.url, PAWL_UPSTREAM: upstream.url }, homeB);
  });
  afterAll(async () => {
    await pawl?.remove();
    await database?.close();
  });
  const inA = (...args: string[]) => command(args, { PAWL_HOME: homeA, DATABASE_URL: database.url });
  const inB = (...args: string[]) => command(args, { PAWL_HOME: homeB, DATABASE_URL: database.url });
  /** Two people are no crowd: here their conversations are learned from all the same. */
  const settings = join(folder, 'curate.config.ts');
  const curated = async () => {
    writeFileSync(
      settings,
      `import { outcome, weighted } from 'pawl';
const reward = weighted({ resolved: [1, outcome('resolved')] });
export default { agents: [{ name: 'support-desk', reward, curate: { kAnonymity: 1 } }] };\n`,
    );
    return JSON.parse(await inA('curate', 'run', '--config', settings, '--json'));
  };

  test('a withdrawal in one is seen by the other, and no command repeats the id', async () => {
    const said = await inB('consent', 'give', 'lee@example.com');
    expect(said).not.toContain('lee');
    expect(said).toContain('has not begun a conversation');
    await inB('consent', 'give', 'kim-7');
    for (const [id, user] of [
      ['case-lee', 'lee@example.com'],
      ['case-kim', 'kim-7'],
    ] as const) {
      expect((await say(pawl, id, user, `Where is ${id}?`)).status).toBe(200);
      expect((await post(pawl, `/t/${id}/v1/outcomes`, { name: 'resolved', value: true })).status).toBe(202);
      expect((await post(pawl, `/t/${id}/v1/feedback`, { vote: 'up', user })).status).toBe(202);
      await recorded(database, id, 1, 2);
    }
    expect(await curated()).toMatchObject({ rows: 2 });
    expect(await inA('consent', 'withdraw', 'lee@example.com')).not.toContain('has not begun');
    expect(await curated()).toMatchObject({
      rows: 1,
      funnel: expect.arrayContaining([
        expect.objectContaining({ gate: 'consent', passed: 1, left: { 'withdrawn since': 1 } }),
      ]),
    });
    const listed = (await inA('trajectories', 'list', '--user', 'kim-7', '--json')).trim();
    expect(JSON.parse(listed).id).toBe('case-kim');
    expect(listed).not.toContain('kim-7');
  });

  test('somebody who withdrew takes the whole conversation out, whoever began it', async () => {
    await inB('consent', 'give', 'alice');
    await inB('consent', 'withdraw', 'bob');
    for (const user of ['alice', 'bob']) await say(pawl, 'case-mix', user, 'Hello');
    await say(pawl, 'case-half', 'alice', 'Good day');
    await say(pawl, 'case-half', null, 'Good evening');
    for (const id of ['case-mix', 'case-half']) {
      await post(pawl, `/t/${id}/v1/outcomes`, { name: 'resolved', value: true });
      await recorded(database, id, 2, 1);
    }
    expect((await readTrajectory(database, 'case-mix'))?.trajectory.consent).toBe('withdrawn');
    expect((await readTrajectory(database, 'case-half'))?.trajectory.consent).toBe('unknown');
    expect((await curated()).funnel[1]).toMatchObject({
      left: { 'not given': 1, 'withdrawn before': 1, 'withdrawn since': 1 },
    });
  });

  test('who calls themselves by somebody’s hash does not become them, and is found by the id they sent', async () => {
    const secret = await installationSecret(database, homeB);
    const victim = hashedId('kim-7', secret);
    const before = await readConsent(database, 'support-desk', victim);
    expect((await say(pawl, 'case-impostor', victim, 'I am Kim, am I not?')).status).toBe(200);
    await post(pawl, '/t/case-impostor/v1/feedback', { vote: 'up', user: victim });
    const recordedTurn = await recorded(database, 'case-impostor', 1, 1);
    expect(recordedTurn!.trajectory).toMatchObject({ user: hashedId(victim, secret), consent: 'unknown' });
    const api = (path: string, method = 'GET') =>
      fetch(`${pawl.url}/api/${path}`, { method, headers: { authorization: `Bearer ${pawl.adminToken}` } });
    const idsOf = async (query: string) =>
      ((await (await api(`trajectories?${query}`)).json()) as { trajectories: { id: string }[] }).trajectories.map(
        ({ id }) => id,
      );
    expect(await idsOf(`user=${victim}`)).toEqual(['case-impostor']);
    expect(await idsOf(`user=${victim}&hashed=true`)).toEqual(['case-kim']);
    expect((await api('trajectories?user=kim-7&hashed=true')).status).toBe(400);
    await api(`consent/${victim}?agent=support-desk`, 'DELETE');
    await inA('consent', 'withdraw', victim);
    expect(await readConsent(database, 'support-desk', victim)).toEqual(before);
    expect(await inA('consent', 'show', victim, '--hashed')).toContain('consent given');
    expect(await inA('trajectories', 'list', '--user', victim, '--hashed', '--json')).toContain('case-kim');
  });

  test('no route shows an id as it was sent, wherever the caller put it', async () => {
    const named = 'member-4711';
    const body = { user: named, safety_identifier: named, metadata: { user_id: named } };
    const messages = [{ role: 'user', content: 'Who am I?' }];
    await post(pawl, '/t/case-named/v1/chat/completions', { model: 'echo', messages, ...body });
    await post(pawl, '/t/case-named/v1/feedback', { vote: 'down', user: named, correction: 'You are welcome.' });
    await post(pawl, '/t/case-named/v1/outcomes', { name: 'resolved', value: true, user: named });
    await recorded(database, 'case-named', 1, 2);
    await inA('consent', 'give', named);
    await inA('score', 'run', '--json');
    const read = async (path: string) => {
      const answer = await fetch(pawl.url + path, { headers: { authorization: `Bearer ${pawl.adminToken}` } });
      return { path, status: answer.status, text: await answer.text() };
    };
    const document = JSON.parse((await read('/api/openapi.json')).text) as { paths: Record<string, { get?: object }> };
    const paths = Object.entries(document.paths).flatMap(([path, { get }]) =>
      get === undefined || path === '/api/live' ? [] : [path.replace('{id}', 'case-named').replace('{user}', named)],
    );
    expect(paths.length).toBeGreaterThan(15);
    const answers = await Promise.all(paths.map((path) => read(`${path}?agent=support-desk`)));
    answers.push(await read(`/api/trajectories?user=${named}`), await read('/metrics'), await read('/healthz'));
    for (const path of ['trajectories/case-named', 'trajectories/case-named/scores', `consent/${named}`])
      expect(answers.find((one) => one.path.startsWith(`/api/${path}?`))).toMatchObject({ status: 200 });
    // Only a refusal may repeat what the caller itself has just typed.
    expect(answers.filter(({ status, text }) => status === 200 && text.includes(named))).toEqual([]);
  });

  test('a key does what it was made for, and the refusal says how to get one that does more', async () => {
    const make = async (...more: string[]) => JSON.parse(await inA('keys', 'create', 'x', '--json', ...more)).token;
    const [usual, outcomes, elsewhere] = [
      await make(),
      await make('--scope', 'outcomes'),
      await make('--agent', 'shop', '--scope', 'call,feedback,outcomes'),
    ];
    const resolved = { trajectory: 'case-kim', name: 'resolved', value: 0 };
    const refused = () => post(pawl, '/v1/outcomes', resolved, usual);
    await until(refused, ({ status }) => status !== 401); // the gateway has heard of the key
    expect((await refused()).body.error?.message).toMatch(/scope outcomes.*--agent support-desk --scope outcomes/);
    expect((await refused()).status).toBe(403);
    await until(
      () => post(pawl, '/v1/feedback', { trajectory: 'case-kim', vote: 'up' }, outcomes),
      ({ status }) => status === 403,
    );

    // Another agent's key is heard, and says nothing about this agent's conversations, nor about their turns.
    const [turn] = (await readTrajectory(database, 'case-kim'))!.turns;
    await until(
      () => post(pawl, '/v1/outcomes', resolved, elsewhere),
      ({ status }) => status === 202,
    );
    await post(pawl, '/v1/feedback', { turn: turn!.id, vote: 'down' }, elsewhere);
    await post(pawl, '/v1/attach', { turn: turn!.id, keys: ['order:9'] }, elsewhere);
    await post(pawl, '/v1/outcomes', { key: 'order:9', name: 'late', value: 1 }, outcomes);
    await recorded(database, 'case-kim', 1, 2);
    await post(pawl, '/v1/feedback', { trajectory: 'case-kim', vote: 'up', comment: 'last' });
    const kim = await until(
      () => readTrajectory(database, 'case-kim'),
      (found) => found!.signals.some(({ comment }) => comment === 'last'),
    );
    expect(kim!.keys).toEqual([]);
    expect(kim!.signals.map(({ kind, value }) => [kind, value]).sort()).toEqual([
      ['feedback', 1],
      ['feedback', 1],
      ['outcome', 1],
    ]);
  });

  test('invented voters and invented targets come to an end', async () => {
    const vote = (i: number) => post(pawl, '/t/case-kim/v1/feedback', { vote: 'down', user: `invented-${i}` });
    const votes = await Promise.all(Array.from({ length: votersPerDay + 20 }, (_, i) => vote(i)));
    expect(votes.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(20);
    const last = votes.find(({ status }) => status === 429)!;
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);

    const invent = (i: number) => post(pawl, `/t/invented-${i}/v1/outcomes`, { name: 'resolved', value: 1 });
    let refused = 0;
    for (let i = 0; i < trustPerDay + 200; i += 50) {
      const some = await Promise.all(Array.from({ length: 50 }, (_, k) => invent(i + k)));
      refused += some.filter(({ status }) => status === 429).length;
    }
    expect(refused).toBeGreaterThanOrEqual(200);
    expect((await post(pawl, '/t/case-kim/v1/outcomes', { name: 'resolved', value: 1 })).status).toBe(202);
  });

  test('a time that no clock shows is refused, and one that is stored already hides nothing', async () => {
    const vote = { trajectory: 'case-kim', vote: 'up', user: 'kim-7' };
    const refused = await post(pawl, '/v1/feedback', { ...vote, at: Number.MAX_SAFE_INTEGER });
    expect(refused.status).toBe(400);
    expect(refused.body.error?.message).toMatch(/between 2000 and a day from now/);
    await database.pool.query(`update pawl.signals set at = '287396-10-12' where target_id = 'case-kim'`);
    for (const id of ['case-kim', 'case-mix']) {
      const response = await fetch(`${pawl.url}/api/trajectories/${id}`, {
        headers: { authorization: `Bearer ${pawl.adminToken}` },
      });
      expect(response.status).toBe(200);
    }
    expect(await inA('trajectories', 'show', 'case-kim')).toContain('case-kim');
    expect(await inA('score', 'run', '--json')).toContain('{');
  });
});

test('callers without id and user who say the same are kept apart, one conversation goes on, also after a restart', async () => {
  const first = await startPawl({ PAWL_UPSTREAM: upstream.url });
  const asks = (text: string, ...before: string[]) => {
    const history = before.flatMap((said) => [
      { role: 'user', content: said },
      { role: 'assistant', content: `You said: ${said}` },
    ]);
    return { model: 'echo', messages: [...history, { role: 'user', content: text }] };
  };
  const turnOf = async (pawl: PawlProcess, body: object) =>
    (await post(pawl, '/v1/chat/completions', body)).headers.get('x-pawl-turn')!;
  const before = [asks('hi'), asks('hi'), asks('second', 'hi'), asks('alone'), asks('more', 'alone')];
  const turns: string[] = [];
  for (const body of before) turns.push(await turnOf(first, body));
  await first.kill();
  const again = await first.restart();
  try {
    const after = [
      asks('other', 'hi'),
      asks('third', 'hi', 'second'),
      asks('end', 'alone', 'more'),
      asks('no', 'alone'),
    ];
    for (const body of after) turns.push(await turnOf(again, body));
    const store = await again.store();
    const [a, b, second, alone, more, other, third, end, fork] = await Promise.all(
      turns.map(
        async (id) =>
          (await until(
            () => readTurn(store, id),
            (turn) => turn !== null,
          ))!.trajectory,
      ),
    );
    await store.close();
    expect(new Set([a, b, second, other]).size).toBe(4);
    expect(third).toBe(second);
    expect([more, end]).toEqual([alone, alone]);
    expect(fork).not.toBe(alone);
  } finally {
    await again.remove();
  }
});

test('an embedded database with ids as they came is taken along: found by the same id, shown by none', async () => {
  const home = join(folder, 'embedded');
  const old = await openStore({ home, volatile: true });
  await writeEntries(old, [entry.turn({ agent: 'support-desk', trajectory: 'old', user: 'u-17', startedAt: noon })]);
  await giveConsent(old, 'support-desk', 'u-17', new Date(noon - 1));
  await old.close();
  writeFileSync(join(home, 'secret'), 'x'.repeat(43));
  const run = (...args: string[]) => command(args, { PAWL_HOME: home });
  const shown = await run('consent', 'show', 'u-17');
  expect(shown).toContain(hashedId('u-17', 'x'.repeat(43)));
  expect(shown).toMatch(/consent given/);
  expect(shown).not.toContain('has not begun');
  const listed = await run('trajectories', 'list', '--user', 'u-17', '--json');
  expect(JSON.parse(listed).id).toBe('old');
  expect(listed + (await run('trajectories', 'show', 'old', '--json'))).not.toContain('u-17');
});
