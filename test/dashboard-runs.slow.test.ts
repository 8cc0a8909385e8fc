/**
 * What begins work, pressed where it can succeed: a real Pawl trains a small model from the Train page, is paused and goes on, and
 * plays golden cases from the Evaluate page. What became of it is read through the API, and the pages show it as it happens.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashedId } from '../src/collect/person.ts';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import { parseSpec } from '../src/engine/model-spec.ts';
import { newModel } from '../src/engine/new-model.ts';
import { converse } from '../src/score/fixtures.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import { openStore } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { installationSecret } from '../src/store/secret.ts';
import { enter, openBrowser, settled } from './browser.ts';
import { type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-dashboard-runs-'));
const home = join(folder, '.pawl');
let pawl: PawlProcess;
let browser: Browser;

// biome-ignore lint/suspicious/noExplicitAny: the bodies of every route
async function call(method: string, path: string, body?: object): Promise<any> {
  const answer = await fetch(`${pawl.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
  return answer.json();
}

beforeAll(async () => {
  const golden = Array.from({ length: 6 }, (_, i) => ({
    ...{ id: `golden-${i}`, type: 'where', messages: [{ role: 'user', content: `Where is order ${i}?` }] },
    expect: { contains: 'sent' },
  }));
  writeFileSync(join(folder, 'golden.jsonl'), golden.map((one) => JSON.stringify(one)).join('\n'));
  writeFileSync(
    join(folder, 'pawl.config.ts'),
    `import { defineAgent, defineConfig, feedback, weighted } from 'pawl';
export default defineConfig({
  agents: [
    defineAgent({
      name: 'desk',
      reward: weighted({ votes: [1, feedback()] }),
      curate: { maxUserShare: 1, kAnonymity: 1 },
      train: { base: 'model', without: ['points', 'private', 'types', 'balance'] },
      evaluate: { golden: 'golden.jsonl', maxTokens: 8 },
      loop: { every: null, after: null },
    }),
  ],
  engine: { threads: 1 },
});
`,
  );
  await writeCheckpoint(join(folder, 'model'), newModel(parseSpec('d32-l2-h2-kv1-v300'), { seed: 1, texts: [] }));
  const store = await openStore({ home });
  const user = hashedId('ann', await installationSecret(store, home));
  const at = Date.now() - 600_000;
  await giveConsent(store, 'desk', user, new Date(at - 1000));
  for (let i = 0; i < 96; i++) {
    const id = `talk-${i}`;
    const turns = converse(`Where is order ${i}?`, [{ say: `Order ${i} was sent.` }], {
      ...{ trajectory: id, user, startedAt: at + i },
    });
    const vote = { identity: `vote ${id}`, user, value: 1, target: { kind: 'trajectory' as const, id } };
    await writeEntries(store, [
      ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
      entry.signal({ ...vote, at: at + 60_000, receivedAt: at + 60_000 }),
    ]);
  }
  await store.close();
  [pawl, browser] = await Promise.all([
    startPawl({}, home, undefined, ['--config', join(folder, 'pawl.config.ts')]),
    openBrowser(),
  ]);
  await call('POST', '/api/score/runs', { agent: 'desk' });
  await call('POST', '/api/datasets', { agent: 'desk' });
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await pawl?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the button's dialog, fills it in, and presses. */
async function press(page: Page, name: string, fill: (dialog: ReturnType<Page['getByRole']>) => Promise<unknown>) {
  await page.getByRole('button', { name, exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await fill(dialog);
  const command = await dialog.locator('.command code').innerText();
  await dialog.getByRole('button', { name, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  return command;
}
const nothing = async () => {};
const runOf = (id: string) => call('GET', `/api/runs/${id}?last=1`);

test('a run begins, pauses, goes on and ends, and an evaluation is played, all from their pages', async () => {
  const { page, complaints } = await enter(browser, { url: pawl.url, token: pawl.adminToken });
  const status = page.locator('.figure', { hasText: 'Status' }).locator('.value');

  await page.goto(`${pawl.url}/train`);
  await settled(page);
  const begun = await press(page, 'Begin a run', (dialog) =>
    dialog.getByRole('combobox', { name: 'Recipe' }).selectOption('sft'),
  );
  expect(begun).toBe('pawl train --agent desk --dataset desk-v1 --recipe sft');
  await page.waitForURL(/\/train\/sft-/);
  const id = decodeURIComponent(new URL(page.url()).pathname.split('/').at(-1)!);
  expect((await runOf(id)).run).toMatchObject({ agent: 'desk', recipe: 'sft', settings: { dataset: 'desk-v1' } });
  await until(
    () => runOf(id),
    ({ run }) => run.step > 0,
  );
  await status.getByText('running').waitFor();
  expect(await press(page, 'Pause', nothing)).toBe(`pawl runs pause ${id}`);
  const paused = await until(
    () => runOf(id),
    ({ run }) => run.status !== 'running',
  );
  expect(paused.run).toMatchObject({ status: 'paused', reason: 'Paused on request.' });
  expect(paused.run.step).toBeLessThan(paused.run.steps);
  await status.getByText('paused').waitFor(); // told by the stream, nobody asked again
  expect(await press(page, 'Resume', nothing)).toBe(`pawl runs resume ${id}`);
  const { run, model } = await until(
    () => runOf(id),
    ({ model: written }) => written !== null,
  );
  expect(run).toMatchObject({ status: 'finished', step: run.steps });
  await status.getByText('finished').waitFor();
  await page.getByRole('heading', { name: 'Loss' }).waitFor();

  await call('POST', '/api/releases', { agent: 'desk', name: 'learned', checkpoint: model, run: id });
  await page.goto(`${pawl.url}/evaluate`);
  await settled(page);
  const played = await press(page, 'Start an evaluation', (dialog) =>
    dialog.getByRole('combobox', { name: 'Candidate' }).selectOption('learned'),
  );
  expect(played).toBe('pawl evaluate --agent desk --candidate learned');
  await page.waitForURL(/job=/);
  await page.getByRole('link', { name: 'read the report' }).click();
  await page.waitForURL(/\/evaluate\/report-/);
  const report = await call('GET', `/api/reports/${new URL(page.url()).pathname.split('/').at(-1)}`);
  expect(report).toMatchObject({ agent: 'desk', candidate: 'learned', suite: { tasks: 6 } });
  await settled(page);
  await page.getByRole('heading', { name: `learned against ${report.baseline}` }).waitFor();
  expect(complaints()).toEqual([]);
  await page.context().close();
}, 600_000);
