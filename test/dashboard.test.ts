/** The dashboard in a real browser, over a real API and database: every page once, and what must never happen. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entry } from '../src/store/fixtures.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';
import { enter, look, openBrowser, pagesOf, settled } from './browser.ts';
import { caseName, hostile, seed } from './dashboard-seed.ts';
import { type Dashboard, openDashboard, seededConfig } from './dashboard-server.ts';

const home = mkdtempSync(join(tmpdir(), 'pawl-dashboard-'));
let store: Store;
let dashboard: Dashboard;
let browser: Browser;

beforeAll(async () => {
  [store, browser] = await Promise.all([withStore(), openBrowser()]);
  const config = seededConfig(home);
  await seed(store, config, 200);
  dashboard = await openDashboard(store, config, home);
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  rmSync(home, { recursive: true, force: true });
});

test('the link of the first start lets somebody in, and its token is in no address afterwards', async () => {
  const { page } = await enter(browser, dashboard);
  expect(page.url()).toBe(`${dashboard.url}/`);
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Pawl' }).waitFor();
  await page.getByLabel('Token').fill('pawl_admin_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token').fill(dashboard.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('nav[aria-label=Pages]');
  await page.context().close();
});

test('every page shows what is there, and nothing complains', async () => {
  const { page, complaints } = await enter(browser, dashboard, { viewport: { width: 1280, height: 900 } });
  const details = [`/collect/${caseName(199)}`, '/deploy/rollouts/v2-r1', '/deploy/releases/v2'];
  const tabs = ['/settings?tab=keys', '/settings?tab=access', '/settings?tab=set'];
  for (const path of [...(await pagesOf(page)), ...details, ...tabs]) {
    await page.goto(dashboard.url + path);
    await settled(page);
    expect([path, ...complaints(), ...(await look(page))]).toEqual([path]);
  }
  await page.context().close();
});

test('what users and models wrote is text: no markup of theirs is run, and what is long is folded', async () => {
  const { page, complaints } = await enter(browser, dashboard);
  await page.goto(`${dashboard.url}/collect/${hostile.id}`);
  await page.getByText(hostile.korean).waitFor();
  expect(await page.getByText(hostile.script).count()).toBeGreaterThanOrEqual(2);
  expect(await page.evaluate(`'harmed' in window`)).toBe(false);
  expect(await page.locator('main script, main img').count()).toBe(0);
  expect(await page.locator('.foreign-text:dir(rtl)').allTextContents()).toEqual([hostile.hebrew]);
  expect(await page.getByText('THE END').count()).toBe(0);
  await page.getByRole('button', { name: /^Show all of 1,?\d+ kB$/ }).click();
  await page.getByText('THE END').waitFor();
  expect(complaints()).toEqual([]);
  await page.context().close();
});

test('what comes in while somebody looks is shown without asking', async () => {
  const { page } = await enter(browser, dashboard);
  await page.goto(`${dashboard.url}/collect`);
  await settled(page);
  await page.getByText('Live', { exact: true }).waitFor();
  expect(await page.getByText('case-000201').count()).toBe(0);
  await writeEntries(store, [entry.turn({ trajectory: 'case-000201', agent: 'desk', startedAt: Date.now() })]);
  await page.getByText('case-000201').waitFor();
  await page.context().close();
});
