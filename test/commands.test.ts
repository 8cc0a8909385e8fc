/** The commands as people run them: real processes, a real database, with and without another Pawl on the same folder. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { trajectoriesCommand } from '../src/collect/command.ts';
import { hashedId } from '../src/collect/person.ts';
import { commands, listedCommands } from '../src/commands.ts';
import { doctorCommand } from '../src/doctor.ts';
import { keysCommand } from '../src/gateway/command.ts';
import { consentCommand } from '../src/privacy/consent-command.ts';
import { readConsent } from '../src/store/consents.ts';
import { entry, noon, signal, turn } from '../src/store/fixtures.ts';
import { activeKeys, hashToken } from '../src/store/keys.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { installationSecret } from '../src/store/secret.ts';
import { bareEnvironment } from './bare-environment.ts';

const bin = fileURLToPath(new URL('../bin/pawl.js', import.meta.url));
type Ran = { readonly code: number; readonly out: string; readonly err: string };

let home: string;
let folder: string;

function pawl(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [bin, ...args],
      {
        cwd: folder,
        env: { ...bareEnvironment(), PAWL_HOME: home, PAWL_PORT: '0', ...env },
        maxBuffer: 64 * 1024 * 1024,
      },
      (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

const evil = '\u001b]0;owned\u0007\u001b[2Jhello';

async function seed(store: Store): Promise<void> {
  const call = { id: 'c1', type: 'function', function: { name: 'lookup_order', arguments: '{"id":1234}' } };
  const ask = { role: 'user', content: 'Where is order 1234?' };
  const ann = hashedId('ann@example.com', await installationSecret(store, home));
  await writeEntries(store, [
    entry.turn({
      trajectory: 'order-1234',
      user: ann,
      startedAt: noon,
      request: { model: 'small', messages: [ask] },
      choices: [
        { index: 0, message: { role: 'assistant', content: null, tool_calls: [call] }, finishReason: 'tool_calls' },
      ],
    }),
    entry.turn({
      trajectory: 'order-1234',
      user: ann,
      startedAt: noon + 1500,
      request: {
        model: 'small',
        messages: [
          ask,
          { role: 'assistant', content: '', tool_calls: [call] },
          { role: 'tool', tool_call_id: 'c1', content: '{"status":"shipped"}' },
        ],
      },
    }),
    { kind: 'signal', signal: signal({ target: { kind: 'trajectory', id: 'order-1234' }, comment: 'Quick!' }) },
    {
      kind: 'turn',
      turn: turn({
        trajectory: 'evil',
        startedAt: noon + 60_000,
        release: evil,
        error: evil,
        status: 'error',
        request: { messages: [{ role: 'user', content: evil }] },
      }),
    },
  ]);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-commands-'));
  home = join(folder, 'home');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('while another Pawl has the folder', () => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore({ home, volatile: true });
    await seed(store);
  });
  afterAll(() => store.close());

  test('trajectories list shows each conversation in aligned columns, newest first', async () => {
    const { code, out } = await pawl(['trajectories', 'list']);
    expect(code).toBe(0);
    const [titles = '', first = '', second = ''] = out.split('\n');
    expect(first).toContain('evil');
    expect(second).toMatch(/^2026-05-20 12:00:00 {2}order-1234 .* 2 +32 +500 ms +ok .*unknown$/);
    expect(second.indexOf('order-1234')).toBe(titles.indexOf('ID'));
    expect(second.indexOf('unknown')).toBe(titles.indexOf('CONSENT'));
    expect(out).not.toContain('\u001b');
  });

  test('trajectories list filters, also by a user id that was stored as a hash, and prints JSON', async () => {
    const { out } = await pawl(['trajectories', 'list', '--user', 'ann@example.com', '--json']);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    ).toEqual(['order-1234']);
  });

  test('trajectories show tells the story turn by turn, without repeating the history', async () => {
    const { code, out } = await pawl(['trajectories', 'show', 'order-1234']);
    expect(code).toBe(0);
    expect(out.match(/Where is order 1234\?/g)).toHaveLength(1);
    expect(out).toMatch(/turn 1 .*tool_calls\n.*\n.*lookup_order\(id: 1234\)/);
    expect(out).toMatch(/turn 2 {2}\+1\.5 s[\s\S]*lookup_order → \{"status":"shipped"\}[\s\S]*On its way\./);
    expect(out).toMatch(/signals[\s\S]*vote = 1 \(up\)[\s\S]*Quick!/);
  });

  test('recorded escape sequences do not reach the terminal, and a pipe gets no colours', async () => {
    const { code, out } = await pawl(['trajectories', 'show', 'evil', '--full']);
    expect(code).toBe(0);
    expect(out).not.toContain('\u001b');
    expect(out).not.toContain('\u0007');
    expect(out).toContain('␛[2J');
  });

  test('an unknown trajectory is one sentence with the way out and no stack', async () => {
    const { code, out, err } = await pawl(['trajectories', 'show', 'nope']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/^There is no trajectory nope\. `pawl trajectories list`/);
    expect(err).not.toMatch(/\n\s+at /);
  });

  test('overview says what the first page of the dashboard shows, in words and as the API answers it', async () => {
    const { code, out } = await pawl(['overview']);
    expect(code).toBe(0);
    expect(out).toMatch(/The loop has not turned yet\n {2}collect +\d+ conversations today/);
    expect(out).toMatch(/Go or no-go: no-go\n.*\nCHECK .*\nconversations +\d+ +2,000 +fail/);
    const { stages, go } = JSON.parse((await pawl(['overview', '--json'])).out);
    expect({ stages, go }).toMatchObject({
      stages: { most: 50_000, datasets: { rows: null } },
      go: { verdict: 'no-go' },
    });
  });

  test('keys create prints a token that the gateway accepts, list hides it, revoke ends it', async () => {
    const made = await pawl([
      'keys',
      'create',
      'web shop',
      '--agent',
      'desk',
      '--origin',
      'simulation',
      '--rate',
      '60',
    ]);
    const token = /OPENAI_API_KEY=(pawl_\S+)/.exec(made.out)?.[1];
    expect(made.out).toContain('OPENAI_BASE_URL=http://127.0.0.1:');
    const key = (await activeKeys(store)).find(({ hash }) => hash === hashToken(token!).toString('hex'));
    expect(key).toMatchObject({ name: 'web shop', agent: 'desk', origin: 'simulation', rateLimit: 60 });

    const list = await pawl(['keys', 'list']);
    expect(list.out).toContain(key!.id);
    expect(list.out).not.toContain(token);

    expect((await pawl(['keys', 'revoke', key!.id])).code).toBe(0);
    expect(await activeKeys(store)).toEqual([]);
  });

  test('consent goes from given to withdrawn under the same hash that recording uses', async () => {
    const user = 'ann@example.com';
    const stored = hashedId(user, await installationSecret(store, home));
    await pawl(['consent', 'give', user, '--agent', 'desk']);
    expect((await readConsent(store, 'desk', stored))?.now).toBe('given');
    expect((await pawl(['consent', 'withdraw', user, '--agent', 'desk'])).out).toContain(stored);
    const shown = await pawl(['consent', 'show', user, '--agent', 'desk', '--json']);
    expect(JSON.parse(shown.out)).toMatchObject({ user: stored, now: 'withdrawn' });
  });

  test.each([
    [['trajectories', 'list', '--limit', '201'], /1 to 200/],
    [['keys', 'create', 'x', '--agent', 'Desk!'], /agent: lower-case letters/],
  ])('%j is refused with what would be right', async (args, said) => {
    const { code, err } = await pawl(args);
    expect(code).toBe(1);
    expect(err).toMatch(said);
    expect(err).not.toMatch(/\n\s+at /);
  });
});

describe('when no Pawl is running', () => {
  test('a command starts the database, answers, and stops it', async () => {
    const { code, out, err } = await pawl(['trajectories', 'list', '--json', '--limit', '1']);
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out).id).toBe('evil');
  });

  test('two commands at the same time both answer after that', async () => {
    const commands = [
      ['keys', 'list', '--json'],
      ['consent', 'list', '--agent', 'desk'],
    ];
    const both = await Promise.all(commands.map((command) => pawl(command)));
    expect(both.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
    ]);
  });

  test('looking into a folder without data says so and makes nothing there', async () => {
    const { code, err } = await pawl(['trajectories', 'list'], { PAWL_HOME: join(folder, 'elsewhere') });
    expect(code).toBe(1);
    expect(err).toMatch(/nothing recorded in .*elsewhere yet/);
    expect(existsSync(join(folder, 'elsewhere'))).toBe(false);
  });
});

test('the demo is no command, and whoever tries it is told where it is', async () => {
  for (const args of [['demo'], ['demo', 'break'], ['demo', 'break', '--once']])
    expect(await pawl(args)).toEqual({
      ...{ code: 1, out: '' },
      err: expect.stringMatching(
        /^error: there is no command demo: .*`npm start -- --break` shows a candidate that .*\n$/,
      ),
    });
  expect((await pawl(['--help'])).out).not.toContain('demo');
});

test('doctor prints signs and ways out, and its exit code says that something does not work', async () => {
  const { code, out } = await pawl(['doctor']);
  expect(code).toBe(1);
  expect(out).toMatch(/✓ node/);
  expect(out).toMatch(/✗ upstreams .*\n +→ Set PAWL_UPSTREAM/);
});

test.each([
  [['trajectories', 'import', '.'], {}, '. is a folder. Give a file of JSON lines, or - for standard input.\n'],
  [['labels', 'import', '.'], {}, '. is a folder. Give a file of JSON lines, or - for standard input.\n'],
  [['trajectories', 'import', '/dev/null', '--json'], {}, 'There is no conversation in /dev/null.\n'],
  [['labels', 'import', '/dev/null'], {}, 'There is no label in /dev/null.\n'],
  [
    ['keys', 'list'],
    { DATABASE_URL: 'postgres://127.0.0.1:1/pawl' },
    'Opening the database at postgres://127.0.0.1:1/pawl failed: connect ECONNREFUSED 127.0.0.1:1. DATABASE_URL, or `databaseUrl` in the settings, says where it is and as whom; without it Pawl brings a PostgreSQL of its own.\n',
  ],
])('a plausible mistake is told in a sentence with the way out: %j', async (args, env, said) => {
  expect(await pawl(args, env)).toEqual({ code: 1, out: '', err: said });
});

test('doctor says of a home that is a file what it is', async () => {
  const { code, out } = await pawl(['doctor'], { PAWL_HOME: import.meta.filename });
  expect(code).toBe(1);
  expect(out).toMatch(/✗ home .*commands\.test\.ts is a file\n +→ Change its owner, or set PAWL_HOME to another\./);
});

test('a command that is not there is told what is; a key or a consent for an agent that is not listed is made, with a warning', async () => {
  expect(await pawl(['trajectories', 'lis'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /unknown command 'lis'\n\(Did you mean list\?\)\n`pawl trajectories --help` lists what there is\./,
    ),
  });
  const key = await pawl(['keys', 'create', 'typo', '--agent', 'suport-desk']);
  expect(key).toMatchObject({ code: 0, err: expect.stringContaining('Agent suport-desk is not in the settings (') });
  const consent = await pawl(['consent', 'give', 'u-1', '--agent', 'suport-desk']);
  expect(consent).toMatchObject({
    code: 0,
    err: expect.stringContaining('Agent suport-desk is not in the settings ('),
  });
});

test('every command has help with an example', () => {
  const all = [trajectoriesCommand(), keysCommand(), consentCommand(), doctorCommand()];
  for (const command of all.flatMap((parent) => [parent, ...parent.commands])) {
    let help = '';
    command.configureOutput({
      writeOut: (text) => {
        help += text;
      },
    });
    command.outputHelp();
    expect(help, command.name()).toMatch(/Examples?:\n {2}pawl /);
  }
});

test('the list of commands names each as it names itself, and loads only what is called', async () => {
  for (const [name, [summary, load]] of Object.entries(commands)) {
    const command = await load();
    expect(command.name()).toBe(name);
    expect(command.description(), name).not.toBe('');
    expect(summary, name).toMatch(/^[A-Z].*\.$/);
  }
  const listed = await listedCommands(['keys', 'list']);
  expect(listed.map((command) => command.name())).toEqual(Object.keys(commands));
  expect(listed.filter((command) => command.commands.length > 0).map((command) => command.name())).toEqual(['keys']);
});
