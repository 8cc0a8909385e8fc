/**
 * Score, Curate, Train and Evaluate to the bottom: each page and each record's own, at both widths and in both themes, and every
 * button that changes something pressed once and its effect read back through the API.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withStore } from '../src/store/test-store.ts';
import { enter, look, openBrowser, settled } from './browser.ts';
import { hostile, seed } from './dashboard-seed.ts';
import { type Dashboard, openDashboard, seededConfig } from './dashboard-server.ts';
import { gatedReport, type SeededStages, seedStages, stagesRun } from './dashboard-stages-seed.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-dashboard-'));
let dashboard: Dashboard;
let browser: Browser;
let seeded: SeededStages;

beforeAll(async () => {
  const [store, opened] = await Promise.all([withStore(), openBrowser()]);
  browser = opened;
  const config = seededConfig(home);
  const { now } = await seed(store, config, 600);
  seeded = await seedStages(store, config, now);
  dashboard = await openDashboard(store, config, home);
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  rmSync(home, { recursive: true, force: true });
});

/** What the API says, to whoever has the admin token. */
const read = async <T>(path: string): Promise<T> => {
  const answer = await fetch(dashboard.url + path, { headers: { authorization: `Bearer ${dashboard.token}` } });
  if (!answer.ok) throw new Error(`${answer.status} ${path}: ${await answer.text()}`);
  return (await answer.json()) as T;
};

const places = () => [
  ...['/score', '/score?agent=shop', '/score?weights=resolved:0.10,tools:0.60,tone:0.20'],
  ...['/curate', '/curate?agent=shop', `/curate/${seeded.datasets[1]}`],
  ...['/train', '/train?agent=shop', `/train/${stagesRun}`, `/train/${stagesRun}?step=40`, '/train/desk-turn-1'],
  ...['/evaluate', '/evaluate?agent=shop', `/evaluate/${gatedReport}`, `/evaluate/${gatedReport}?cases=worse`],
];

describe.each([
  { width: 1600, height: 1000 },
  { width: 390, height: 844 },
])('at $width px', (viewport) => {
  test.each(['light', 'dark'] as const)(
    'the pages of the stages are whole, full and empty, in %s',
    async (colorScheme) => {
      const { page, complaints } = await enter(browser, dashboard, { viewport, colorScheme });
      for (const path of places()) {
        await page.goto(dashboard.url + path);
        await settled(page);
        expect([path, ...complaints(), ...(await look(page))]).toEqual([path]);
      }
      await page.context().close();
    },
    600_000,
  );
});

async function open(page: Page, path: string): Promise<void> {
  await page.goto(dashboard.url + path);
  await settled(page);
}

/** Presses a button, answers its question, and waits until that is done. */
async function press(page: Page, name: string, title: RegExp, reason?: string): Promise<string> {
  await page.getByRole('button', { name, exact: true }).first().click();
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.waitFor();
  if (reason !== undefined) await dialog.getByRole('textbox').fill(reason);
  const command = await dialog.locator('.command code').innerText();
  await dialog.getByRole('button', { name, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  return command;
}

test('sliders ask what other weights would do, the address keeps them, and nothing is changed', async () => {
  const { page, complaints } = await enter(browser, dashboard);
  await open(page, '/score');
  const before = await read<{ parts: unknown[] }>('/api/score/distribution?agent=desk');
  await page.getByRole('slider', { name: /^resolved/ }).fill('0');
  await page.waitForURL(/weights=/);
  const weights = new URL(page.url()).searchParams.get('weights') ?? '';
  expect(weights).toContain('resolved:0.00');
  type WhatIf = { kept: { gained: number; lost: number } };
  const { kept } = await read<WhatIf>(`/api/score/what-if?agent=desk&weights=${weights}`);
  expect(kept.gained + kept.lost).toBeGreaterThan(0);
  await page.getByText(`${kept.gained} in, ${kept.lost} out`).waitFor();
  await page.getByRole('button', { name: 'As set' }).click();
  await page.waitForURL((url) => !url.searchParams.has('weights'));
  expect((await read<{ parts: unknown[] }>('/api/score/distribution?agent=desk')).parts).toEqual(before.parts);
  expect(complaints()).toEqual([]);
  await page.context().close();
}, 600_000);

test('gates show the answers to look at as text, and cases where the two differ stand first', async () => {
  const { page, complaints } = await enter(browser, dashboard, { viewport: { width: 1600, height: 1000 } });
  await open(page, `/evaluate/${gatedReport}`);
  await page.getByText('2 answers to look at').click();
  await page.locator('.foreign-text', { hasText: hostile.script }).waitFor();
  expect(await page.evaluate(`'harmed' in window`)).toBe(false);
  type Report = { tasks: { baseline: number; candidate: number }[] };
  const { tasks } = await read<Report>(`/api/reports/${gatedReport}`);
  const worse = tasks.filter(({ baseline, candidate }) => candidate < baseline).length;
  await page.getByRole('link', { name: `Worse now ${worse}` }).click();
  await expect.poll(() => page.locator('.scroller tbody tr').count()).toBe(worse);
  await page.getByText('231', { exact: false }).first().waitFor(); // users with it
  expect(complaints()).toEqual([]);
  await page.context().close();
}, 600_000);

test('episodes of a step stand side by side, the best first, and the address says which step', async () => {
  const { page, complaints } = await enter(browser, dashboard, { viewport: { width: 1600, height: 1000 } });
  await open(page, `/train/${stagesRun}`);
  const columns = page.getByRole('list', { name: 'Episodes, side by side' }).locator('> li');
  await page.getByText('task train-refund-79').waitFor();
  expect(await columns.locator('h3').allInnerTexts()).toEqual(['Attempt 1', 'Attempt 4', 'Attempt 7', 'Attempt 2']);
  const tops = await columns.evaluateAll((nodes) =>
    nodes.map((node) => (node as unknown as { offsetTop: number }).offsetTop),
  );
  expect(new Set(tops).size).toBe(1);
  expect(await columns.getByText(hostile.script).count()).toBe(1);
  expect(await page.evaluate(`'harmed' in window`)).toBe(false);
  await page.getByRole('button', { name: 'Earlier' }).click();
  await page.waitForURL(/step=60/);
  await page.getByText('task train-refund-59').waitFor();
  expect(await page.getByText(`pawl runs episodes ${stagesRun} --step 60`).count()).toBe(1);
  await page.getByRole('combobox', { name: 'Step' }).selectOption({ index: 0 });
  await page.getByText('task train-refund-19').waitFor();
  await open(page, `/train/${stagesRun}?step=41`);
  await page.getByText('41: none is kept').waitFor({ state: 'attached' });
  expect(complaints()).toEqual([]);
  await page.context().close();
}, 600_000);

test('every button does what it says, and says the command that does the same', async () => {
  const { page, complaints } = await enter(browser, dashboard, { viewport: { width: 1280, height: 900 } });

  await open(page, '/curate');
  await page.getByRole('button', { name: 'In whose words?' }).click();
  await page.getByText(/^user \d/).waitFor();
  await page.getByRole('button', { name: 'Look for jumps' }).click();
  expect(await press(page, 'Release', /about refund/, 'A new form.')).toBe(
    `pawl curate release ${seeded.shiftedKey} refund --agent desk --reason 'A new form.'`,
  );
  type Shifts = { shifts: { key: string; releasedAt: string | null }[] };
  expect((await read<Shifts>('/api/shifts?agent=desk')).shifts).toEqual([
    expect.objectContaining({ key: seeded.shiftedKey, releasedAt: expect.any(String) }),
  ]);

  await open(page, '/score');
  expect(await press(page, 'Propose weights', /^Fit/)).toBe('pawl reward fit --agent desk');
  await page.getByText(/from \d+ conversations/).waitFor();
  expect(await press(page, 'Score now', /^Score/)).toBe('pawl score run --agent desk');
  type Plan = { pending: number };
  const plan = await fetch(`${dashboard.url}/api/score/plans`, {
    ...{ method: 'POST', body: JSON.stringify({ agent: 'desk' }) },
    headers: { authorization: `Bearer ${dashboard.token}`, 'content-type': 'application/json' },
  });
  expect(((await plan.json()) as Plan).pending).toBe(0);

  type Datasets = { datasets: { id: string }[] };
  const newest = async () => (await read<Datasets>('/api/datasets?agent=desk')).datasets[0]?.id;
  await open(page, '/curate');
  const known = await newest();
  expect(await press(page, 'Make a dataset', /^Make/)).toBe('pawl curate run --agent desk');
  await page.waitForURL(/\/curate\/desk-v\d+/);
  expect(await newest()).not.toBe(known);
  expect(page.url()).toContain(await newest());

  type Run = { run: { status: string; request: string | null } };
  const run = async () => (await read<Run>(`/api/runs/${stagesRun}`)).run;
  await open(page, `/train/${stagesRun}`);
  expect(await press(page, 'Pause', /^Pause/)).toBe(`pawl runs pause ${stagesRun}`);
  expect((await run()).status).toBe('paused'); // nobody trained it
  await page.locator('.figure .value', { hasText: 'paused' }).waitFor();
  expect(await press(page, 'Stop', /^Stop/)).toBe(`pawl runs stop ${stagesRun}`);
  expect((await run()).status).toBe('stopped');
  expect(complaints()).toEqual([]);
  await page.context().close();
}, 600_000);

test('where this process neither trains nor evaluates, the dialog says so and stays', async () => {
  const { page } = await enter(browser, dashboard);
  for (const [path, name, said] of [
    [`/train/${stagesRun}`, 'Resume', /Nothing is trained in this process/],
    ['/train', 'Begin a run', /Nothing is trained in this process/],
    ['/evaluate', 'Start an evaluation', /Nothing is evaluated in this process/],
  ] as const) {
    await open(page, path);
    await page.getByRole('button', { name, exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name, exact: true }).click();
    await dialog.getByText(said).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  }
  await page.context().close();
}, 600_000);
