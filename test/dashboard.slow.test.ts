/**
 * The whole walk: ten thousand conversations, both widths, both themes, every page; and every button that changes something is
 * pressed once, and its effect read back through the API.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
const config = seededConfig(home);

beforeAll(async () => {
  [store, browser] = await Promise.all([withStore(), openBrowser()]);
  await seed(store, config, 10_000);
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

const places = [
  ...[
    `/collect/${caseName(9_999)}`,
    `/collect/${hostile.id}`,
    '/collect?vote=down&minScore=0.5',
    '/collect?text=nowhere',
  ],
  ...['/deploy/rollouts/v2-r1', '/deploy/releases/v2', `/review/${caseName(135)}`],
  ...['/settings?tab=keys', '/settings?tab=access', '/settings?tab=set', '/audit?type=rollout-'],
  '/?agent=shop',
  '/collect?agent=shop',
  '/deploy?agent=shop',
  '/review?agent=shop',
];

describe.each([
  { width: 1600, height: 1000 },
  { width: 390, height: 844 },
])('at $width px', (viewport) => {
  test.each(['light', 'dark'] as const)(
    'every page is whole, full and empty, in %s',
    async (colorScheme) => {
      const { page, complaints } = await enter(browser, dashboard, { viewport, colorScheme });
      for (const path of [...(await pagesOf(page)), ...places]) {
        await page.goto(dashboard.url + path);
        await settled(page);
        expect([path, ...complaints(), ...(await look(page))]).toEqual([path]);
      }
      await page.context().close();
    },
    600_000,
  );
});

test('a list of ten thousand scrolls to its end, and holds only what is in view', async () => {
  const { page } = await enter(browser, dashboard);
  await page.goto(`${dashboard.url}/collect`);
  await settled(page);
  const scroller = page.locator('.scroller');
  const last = page.getByRole('link', { name: caseName(1), exact: true });
  while ((await last.count()) === 0) {
    await scroller.press('End');
    expect(await page.locator('tbody tr').count()).toBeLessThan(100);
  }
  await page.context().close();
}, 600_000);

test('a page outlives a restart of Pawl: it says that it is cut off, comes back by itself, and shows what came meanwhile', async () => {
  const { page } = await enter(browser, dashboard);
  await page.goto(`${dashboard.url}/collect`);
  await settled(page);
  await page.getByText('Live', { exact: true }).waitFor();
  const { port } = new URL(dashboard.url);
  await dashboard.close();
  await page.getByText('Live', { exact: true }).waitFor({ state: 'detached' });
  await writeEntries(store, [entry.turn({ trajectory: 'while-away', agent: 'desk', startedAt: Date.now() })]);
  const { token } = dashboard;
  dashboard = { ...(await openDashboard(store, config, home, Number(port))), token };
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'while-away', exact: true }).waitFor();
  await page.context().close();
}, 600_000);

type Pressed = { readonly title: RegExp | string; readonly reason?: string; readonly unfit?: string };
const unchecked = 'Let it through unchecked, because';

/** Presses a button, answers its question, and waits until that is done. */
async function press(page: Page, name: string, { title, reason, unfit }: Pressed): Promise<string> {
  await page.getByRole('button', { name, exact: true }).first().click();
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.waitFor();
  if (reason !== undefined) await dialog.getByLabel(/^Reason/).fill(reason);
  if (unfit !== undefined) await dialog.getByLabel(unchecked).fill(unfit);
  const command = await dialog.locator('.command code').innerText();
  await dialog.getByRole('button', { name, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  return command;
}

test('every button does what it says, and says the command that does the same', async () => {
  const { page, complaints } = await enter(browser, dashboard, { viewport: { width: 1280, height: 900 } });
  const open = async (path: string) => {
    await page.goto(dashboard.url + path);
    await settled(page);
  };
  type Loop = { paused: unknown };
  type Rollout = { rollout: { phase: string } };
  type Serving = { releases: { name: string; serving: boolean }[] };
  const serving = async () =>
    (await read<Serving>('/api/releases?agent=desk')).releases.find((one) => one.serving)?.name;

  await open('/');
  expect(await press(page, 'Pause', { title: /^Pause the loop/ })).toBe('pawl loop pause --agent desk');
  expect((await read<Loop>('/api/loop?agent=desk')).paused).not.toBeNull();
  await press(page, 'Resume', { title: /go on/ });
  expect((await read<Loop>('/api/loop?agent=desk')).paused).toBeNull();
  await press(page, 'Turn now', { title: /^Turn the loop/ });
  expect(await read('/api/audit?type=loop-')).toMatchObject({
    rows: expect.arrayContaining([expect.objectContaining({ agent: 'desk' })]),
  });

  await open('/deploy/rollouts/v2-r1');
  await press(page, 'Hold', { title: /^Keep/, reason: 'It’s a test' });
  expect((await read<Rollout>('/api/rollouts/v2-r1')).rollout.phase).toBe('paused');
  await press(page, 'Approve', { title: /go on/, reason: 'Seen.' });
  expect((await read<Rollout>('/api/rollouts/v2-r1')).rollout.phase).not.toBe('paused');
  await press(page, 'Abort', { title: /back\?$/, reason: 'Not this one.' });
  expect((await read<Rollout>('/api/rollouts/v2-r1')).rollout.phase).toBe('rolled-back');

  await open('/deploy/releases/v3');
  // No gateway runs here, so nobody can ask what never served whether it fits.
  await page.getByRole('button', { name: 'Roll out', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Roll out', exact: true }).click();
  await page.getByRole('alert').getByText('Whether release v3 fits its server could not be asked').waitFor();
  expect(complaints().filter((one) => !one.includes('409'))).toEqual([]);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  const unfit = 'There is no gateway.';
  expect(await press(page, 'Roll out', { title: /step by step/, unfit })).toBe(
    "pawl rollouts start --agent desk --candidate v3 --unfit 'There is no gateway.'",
  );
  await page.waitForURL(/\/deploy\/rollouts\/v3-r1/);
  expect((await read<Rollout>('/api/rollouts/v3-r1')).rollout.phase).toBe('waiting');
  await settled(page);
  expect(await press(page, 'Promote', { title: /everybody now/, reason: "It's fine", unfit })).toBe(
    "pawl rollouts promote v3-r1 --reason 'It'\\''s fine' --unfit 'There is no gateway.'",
  );
  expect(await serving()).toBe('v3');
  await open('/deploy/releases/v1');
  await press(page, 'Serve at once', { title: /everybody now/, reason: 'Back.' });
  expect(await serving()).toBe('v1');
  await open('/deploy/releases/v2');
  await press(page, 'Force', { title: /whatever/, reason: 'Once more.', unfit });
  await page.waitForURL(/\/deploy\/rollouts\//);

  await open('/deploy');
  await press(page, 'Kill switch', { title: /back\?$/, reason: 'Something is odd.' });
  expect(await read('/api/serving?agent=desk')).toMatchObject({ killed: { reason: 'Something is odd.' } });
  await page.getByText('pulled the kill switch').waitFor();
  expect(await page.getByRole('button', { name: 'Kill switch', exact: true }).count()).toBe(0);
  await press(page, 'Release the kill switch', { title: /begin again/, reason: 'It was nothing.' });
  expect(await read('/api/serving?agent=desk')).toMatchObject({ killed: null });
  await page.getByRole('button', { name: 'Kill switch', exact: true }).waitFor();

  await page.getByRole('button', { name: 'New release' }).click();
  const dialog = page.getByRole('dialog', { name: /^Register/ });
  expect(await dialog.getByRole('button', { name: 'New release' }).isDisabled()).toBe(true);
  await dialog.getByLabel('Name', { exact: true }).fill('v4');
  await dialog.getByLabel('Upstream of the settings').fill('vllm');
  await dialog.getByLabel('Model’s name there').fill('desk-4');
  expect(await dialog.locator('.command code').innerText()).toBe(
    'pawl releases create v4 --agent desk --upstream vllm --model desk-4',
  );
  await dialog.getByRole('button', { name: 'New release' }).click();
  await page.waitForURL(/\/deploy\/releases\/v4/);
  expect(await read('/api/releases/v4?agent=desk')).toMatchObject({
    release: { model: 'desk-4', upstream: 'vllm', serving: false },
  });
  await settled(page);
  await page.getByRole('button', { name: 'Pin', exact: true }).click();
  await page.getByLabel('Id', { exact: true }).fill('ann');
  await page.getByRole('dialog').getByLabel(unchecked).fill(unfit);
  await page.getByRole('dialog').getByRole('button', { name: 'Pin', exact: true }).click();
  await page.waitForURL(/\/deploy\?|\/deploy$/);
  const pins = async () => (await read<{ pins: object[] }>('/api/serving?agent=desk')).pins;
  expect(await pins()).toMatchObject([{ kind: 'user', value: expect.stringMatching(/^u_/), release: 'v4' }]);
  await settled(page);
  expect(await press(page, 'Let go', { title: /this user go/ })).toMatch(
    /^pawl releases unpin --agent desk --user u_.+ --hashed$/,
  );
  expect(await pins()).toEqual([]);
  await page.getByText('Nobody is pinned.').waitFor();

  await open('/audit');
  await page.getByRole('button', { name: 'Check every seal' }).click();
  await page.getByText('whole', { exact: true }).waitFor();

  await open('/settings?tab=keys');
  await page.getByLabel('What it is for').fill('a test');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByText('This token is shown this once').waitFor();
  type Keys = { keys: { name: string; revokedAt: string | null }[] };
  const key = async () => (await read<Keys>('/api/keys')).keys.find(({ name }) => name === 'a test');
  expect(await key()).toMatchObject({ revokedAt: null });
  await press(page, 'Revoke', { title: /a test/ });
  expect((await key())?.revokedAt).not.toBeNull();

  await open('/settings?tab=access');
  await page.getByLabel('Whose it is').fill('ann');
  await page.getByRole('combobox', { name: 'Role' }).selectOption('reviewer');
  await page.getByRole('button', { name: 'Give access' }).click();
  const token = await page.locator('.made code').innerText();
  expect(await read('/api/access')).toMatchObject({ access: [{ name: 'ann', role: 'reviewer', revokedAt: null }] });
  expect(complaints()).toEqual([]);

  const ann = await enter(browser, { url: dashboard.url, token });
  await label(ann.page);
  await ann.page.goto(`${dashboard.url}/deploy`);
  await settled(ann.page);
  expect(await ann.page.getByRole('button', { name: 'Kill switch', exact: true }).isDisabled()).toBe(true);
  expect(ann.complaints()).toEqual([]);
  await ann.page.context().close();

  await press(page, 'Revoke', { title: /ann/ });
  expect(await read('/api/access')).toMatchObject({ access: [{ name: 'ann', revokedAt: expect.any(String) }] });
  await page.context().close();
}, 600_000);

/** Labels two conversations with the keyboard alone. */
async function label(page: Page): Promise<void> {
  await page.goto(`${dashboard.url}/review`);
  await settled(page);
  const current = () => page.locator('.queue a[aria-current=true] span').first().innerText();
  const first = await current();
  await page.keyboard.press('?');
  await page.getByText('next, previous conversation').waitFor();
  await page.keyboard.press('c');
  await page.keyboard.type('It will be there on Monday.');
  await page.keyboard.press('Tab');
  await page.evaluate('document.activeElement.blur()');
  await page.keyboard.press('2');
  await page.keyboard.press('Enter');
  await expect.poll(current).not.toBe(first);
  const second = await current();
  await page.keyboard.press('a');
  await expect.poll(current).not.toBe(second);
  const third = await current();
  await page.keyboard.press('j');
  await expect.poll(current).not.toBe(third);
  await page.keyboard.press('k');
  await expect.poll(current).toBe(third);
  type Labels = { labels: { target: { id: string }; score: number; correction: string | null }[] };
  const { labels } = await read<Labels>('/api/labels?agent=desk');
  const of = (id: string) => labels.find(({ target }) => target.id === id);
  expect(of(first)).toMatchObject({ score: 0.25, correction: 'It will be there on Monday.' });
  expect(of(second)).toMatchObject({ score: 1 });
  expect(labels).toHaveLength(2);
}
