/**
 * Releases and rollouts the way an operator has them: a Pawl that serves, commands in processes of their own, holds of a
 * second in the agent's settings, and users who come and go whatever is being rolled out.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Rollout } from '../src/deploy/rollout.ts';
import type { Report } from '../src/evaluate/report.ts';
import type { Store } from '../src/store/postgres.ts';
import { saveReport } from '../src/store/reports.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-rollout-'));
const settings = join(folder, 'pawl.config.ts');
let upstream: TestUpstream;
let pawl: PawlProcess;
let store: Store;
beforeAll(async () => {
  upstream = await startUpstream();
  const deploy = {
    steps: [0.5, 1],
    holdSeconds: 1,
    minTurns: 10,
    minUnits: 5,
    latencySlackMs: 60_000,
    promotion: { rule: 'checks' },
    shadow: { share: 0 },
  };
  writeFileSync(
    settings,
    `export default ${JSON.stringify({
      agents: [{ name: 'desk', deploy }],
      upstreams: { local: { baseUrl: upstream.url } },
    })};`,
  );
  pawl = await startPawl({}, join(folder, 'home'), undefined, ['--config', settings]);
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

const command = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: pawl.home };
  const all = ['bin/pawl.js', ...args, '--config', settings];
  return (await promisify(execFile)(process.execPath, all, { env })).stdout;
};
const refusal = (...args: string[]) =>
  command(...args).then(
    () => 'nothing was refused',
    (error: { stderr: string }) => error.stderr,
  );

const send = async (path: string, body: unknown) => {
  const headers = { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json' };
  const answer = await fetch(`${pawl.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.status).toBeLessThan(300);
  type Answer = { choices?: { message: { content: string | null } }[] };
  return { release: answer.headers.get('x-pawl-release'), body: (await answer.json()) as Answer };
};
let visits = 0;
/** One conversation; whoever is answered in words is helped. */
async function visit(user: string): Promise<string | null> {
  const trajectory = `visit-${visits++}`;
  const { release, body } = await send(`/t/${trajectory}/u/${user}/v1/chat/completions`, {
    model: 'desk',
    messages: [{ role: 'user', content: 'Where is my parcel?' }],
  });
  const helped = typeof body.choices?.[0]?.message.content === 'string';
  await send('/v1/outcomes', { trajectory, name: 'resolved', value: helped });
  return release;
}
/** Resolves once the gateway has heard. */
const answeredBy = (user: string, release: string) =>
  until(
    () => visit(user),
    (name) => name === release,
  );
const users = Array.from({ length: 40 }, (_, i) => `user-${i}`);
/** Traffic that goes on until the rollout has ended. */
async function ended(id: string): Promise<Rollout> {
  for (;;) {
    for (const user of users) await visit(user);
    const { rollout } = JSON.parse(await command('rollouts', 'show', id, '--json')) as { rollout: Rollout };
    if (rollout.endedAt !== null) return rollout;
  }
}
const evaluated = (candidate: string, verdict: Report['verdict']) =>
  saveReport(store, {
    ...{ id: `report-${candidate}`, agent: 'desk', baseline: 'v1', candidate, attempts: 1, temperature: 1, seed: 7 },
    ...{ suite: { name: 'golden', hash: 'abc', tasks: 0 }, overall: null, types: {}, tasks: [], drift: null, verdict },
    ...{ reasons: [], seconds: 0, createdAt: Date.now() },
  });

describe('an operator', () => {
  it('lets the first release serve, and is told what is missing before that', async () => {
    expect(await refusal('releases', 'serve', 'v1')).toMatch(/^Agent desk has no release v1; `pawl releases list/);
    expect(await refusal('releases', 'create', 'v1', '--upstream', 'gpu', '--model', 'echo')).toMatch(
      /^There is no upstream gpu in the settings; there is local\./,
    );
    expect(await command('releases', 'create', 'v1', '--upstream', 'local', '--model', 'echo')).toMatch(
      /^Release v1 of agent desk: echo at upstream local\.\nNothing serves desk yet/,
    );
    expect(await command('releases', 'serve', 'v1', '--by', 'ann')).toBe(
      'Release v1 serves all traffic of desk now.\nClients get it when they ask for the model desk.\n',
    );
    expect(await command('releases', 'serve', 'v1')).toBe('Release v1 serves all traffic of desk already.\n');
  });

  it('is refused a worse candidate, and sees it rolled back on traffic after forcing it', async () => {
    await command('releases', 'create', 'mute', '--upstream', 'local', '--model', 'tools');
    expect(await refusal('rollouts', 'start', '--candidate', 'mute')).toMatch(/has not been evaluated against v1/);
    await evaluated('mute', 'fail');
    expect(await refusal('rollouts', 'start', '--candidate', 'mute')).toMatch(/ended with fail/);
    expect(await refusal('rollouts', 'start', '--candidate', 'mute', '--force')).toMatch(/^--force needs --reason/);
    expect(
      await command('rollouts', 'start', '--candidate', 'mute', '--force', '--reason', 'A dare.', '--by', 'eve'),
    ).toMatch(/^Rollout mute-r1: canary, 50% of the users get the candidate \(step 1 of 2\)\.\n {2}Forced: A dare\./);
    expect(await refusal('releases', 'serve', 'mute')).toMatch(/`pawl rollouts abort mute-r1`/);
    const rollout = await ended('mute-r1');
    expect(rollout).toMatchObject({ phase: 'rolled-back', step: 0 });
    expect(rollout.reasons).toContainEqual(expect.stringMatching(/^resolved: .* worse, and chance does not/));
    for (const user of users) await answeredBy(user, 'v1');
  });

  it('approves one that could not be told apart, holds it, lets it go on to the end, and goes back', async () => {
    await command('releases', 'create', 'v2', '--upstream', 'local', '--model', 'reasoner');
    await evaluated('v2', 'inconclusive');
    expect(await command('rollouts', 'start', '--candidate', 'v2', '--id', 'spring')).toMatch(
      /^Rollout spring: waiting, 0% .*\n {2}Waits for approval\. Its evaluation ended with inconclusive\./,
    );
    expect(await command('rollouts', 'approve', 'spring')).toMatch(/^Rollout spring: canary, 50%/);
    expect(await command('rollouts', 'hold', 'spring')).toMatch(/^Rollout spring: paused, 50%/);
    expect(await command('rollouts', 'approve', 'spring')).toMatch(/^Rollout spring: canary, 50% .*step 1 of 2/);
    expect(await ended('spring')).toMatchObject({ phase: 'promoted', step: 1 });
    await answeredBy('user-0', 'v2');
    expect(await command('releases', 'serve', 'v1', '--reason', 'Too chatty.')).toMatch(
      /^Release v1 serves all traffic of desk now, in place of v2\.\n/,
    );
    expect(await command('releases', 'show', 'v1')).toMatch(/^Release v1 of agent desk, which serves its traffic\n/);
    const rows = (await command('audit', 'list', '--json', '--agent', 'desk')).trim().split('\n');
    const events = rows.map((row) => JSON.parse(row).event as string).reverse();
    // Each check of a release has a key of its own.
    expect(events.filter((event) => !event.startsWith('key-'))).toEqual([
      ...['release-created', 'release-served', 'release-created', 'compatibility-checked', 'rollout-started'],
      ...['rollout-rolled-back', 'release-created', 'compatibility-checked', 'rollout-started', 'rollout-approved'],
      ...['rollout-held', 'rollout-approved', 'rollout-advanced', 'rollout-promoted', 'release-served'],
    ]);
    expect(await command('audit', 'verify')).toContain(`${rows.length} rows, unbroken`);
  });
});
