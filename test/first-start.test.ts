/** What a first start makes is shown, whatever else goes wrong with it. Real processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { listKeys } from '../src/store/keys.ts';
import { isThorough, startPawl, until } from './pawl.ts';

const newHome = (): string => {
  const home = mkdtempSync(join(tmpdir(), 'pawl-first-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

async function pawl(args: string[], env: Record<string, string>, stdout: 'pipe' | number = 'pipe') {
  const child: ChildProcess = spawn(process.execPath, ['bin/pawl.js', ...args], {
    env: { ...process.env, DATABASE_URL: '', PAWL_PORT: '0', PAWL_UPSTREAM: 'http://127.0.0.1:1/v1', ...env },
    stdio: ['ignore', stdout, 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

it('on a port that is taken makes nothing; the next start shows its secrets and they work', async () => {
  const home = newHome();
  const other = createServer((_, response) => void response.end('not Pawl'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const port = String((other.address() as AddressInfo).port);

  const refused = await pawl(['serve'], { PAWL_HOME: home, PAWL_PORT: port });
  expect(refused.code).toBe(1);
  expect(refused.output).toContain(`Port ${port} on 127.0.0.1 is taken`);
  for (const made of ['admin.json', 'postgres', 'last-known.json', 'pawl.lock'])
    expect(existsSync(join(home, made)), made).toBe(false);

  const started = await startPawl({}, home);
  onTestFinished(() => started.kill());
  expect(started.key).toMatch(/^pawl_/);
  const keys = await fetch(`${started.url}/api/keys`, { headers: { authorization: `Bearer ${started.adminToken}` } });
  expect(keys.status).toBe(200);
  const models = await fetch(`${started.url}/v1/models`, { headers: { authorization: `Bearer ${started.key}` } });
  expect(models.status).toBe(200);
  const store = await started.store();
  expect(await listKeys(store)).toHaveLength(1);
  await store.close();

  const elsewhere = { PAWL_HOME: newHome(), PAWL_PORT: new URL(started.url).port };
  const doctor = await pawl(['doctor'], elsewhere);
  expect(doctor.output).toMatch(/✗ port .* is taken by another Pawl/);
  const own = await pawl(['doctor'], { ...elsewhere, PAWL_HOME: home });
  expect(own.output).toMatch(/✓ port +Pawl .* answers/);
});

it.runIf(isThorough && existsSync('/dev/full'))('that cannot show its secrets makes none', async () => {
  const home = newHome();
  const refused = await pawl(['serve'], { PAWL_HOME: home }, openSync('/dev/full', 'w'));
  expect(refused.code).toBe(1);
  const started = await startPawl({}, home);
  onTestFinished(() => started.kill());
  expect([started.key, started.adminToken]).not.toContain('');
});

it('that is interrupted leaves nothing running and nothing in the way', async () => {
  const home = newHome();
  const child = spawn(process.execPath, ['bin/pawl.js', 'serve'], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home, PAWL_PORT: '0' },
    stdio: 'ignore',
  });
  await until(
    () => existsSync(join(home, 'postgres')),
    (made) => made,
    5,
  );
  child.kill('SIGINT');
  await once(child, 'exit');
  expect(existsSync(join(home, 'pawl.lock'))).toBe(false);
  expect(existsSync(join(home, 'postgres', 'data', 'postmaster.pid'))).toBe(false);
  const started = await startPawl({}, home);
  onTestFinished(() => started.kill());
  expect(started.key).toMatch(/^pawl_/);
});

it.runIf(isThorough)(
  'in a home behind a link, with odd characters in a long path, is joined by commands and adopted after kill -9',
  async () => {
    const folder = join(newHome(), `odd 'name" #%20 é ${'long'.repeat(40)}`);
    const link = join(newHome(), 'link');
    const first = await startPawl({ PAWL_UPSTREAM: 'http://127.0.0.1:1/v1' }, folder);
    symlinkSync(folder, link);
    const listed = await pawl(['keys', 'list', '--json'], { PAWL_HOME: link });
    expect(listed.output).toContain('"first"');
    await first.kill('SIGKILL');
    const again = await startPawl({ PAWL_UPSTREAM: 'http://127.0.0.1:1/v1' }, link, first);
    onTestFinished(() => again.kill());
    const health = (await (await fetch(`${again.url}/healthz`)).json()) as { status: string };
    expect(health.status).toBe('ok');
  },
);
