/**
 * A hundred thousand conversations in one list: whoever scrolls comes to the first of them, and the page holds what is in view and
 * no more, however long the list has become.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entry, uuidAt } from '../src/store/fixtures.ts';
import { writeEntries } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';
import { enter, openBrowser, settled } from './browser.ts';
import { type Dashboard, openDashboard, seededConfig } from './dashboard-server.ts';

const all = 100_000;
const home = mkdtempSync(join(tmpdir(), 'pawl-scroll-'));
let dashboard: Dashboard;
let browser: Browser;

beforeAll(async () => {
  const [store, opened] = await Promise.all([withStore(), openBrowser()]);
  browser = opened;
  const begin = Date.now() - all * 5_000; // six days
  for (let from = 0; from < all; from += 2_000) {
    const { refused } = await writeEntries(
      store,
      Array.from({ length: 2_000 }, (_, i) => {
        const n = from + i;
        const startedAt = begin + n * 5_000;
        return entry.turn({
          trajectory: `call-${n}`,
          id: uuidAt(startedAt),
          startedAt,
          agent: 'desk',
          user: `u${n % 500}`,
        });
      }),
    );
    if (refused[0] !== undefined) throw new Error(refused[0].error);
  }
  dashboard = await openDashboard(store, seededConfig(home), home);
}, 900_000);
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  rmSync(home, { recursive: true, force: true });
});

test('a hundred thousand rows scroll to the first conversation, and the document stays as small as its window', async () => {
  const { page, complaints } = await enter(browser, dashboard, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${dashboard.url}/collect`);
  await settled(page);
  const scrollTo = (share: number) =>
    page.locator('.scroller').evaluate((node, to) => {
      const scroller = node as unknown as { scrollTop: number; readonly scrollHeight: number };
      scroller.scrollTop = to * scroller.scrollHeight;
    }, share);
  await page.getByRole('link', { name: `call-${all - 1}`, exact: true }).waitFor();
  const nodes = () => page.evaluate<number>('document.querySelectorAll("*").length');
  const atFirst = await nodes();
  const first = page.getByRole('link', { name: 'call-0', exact: true });
  let most = 0;
  for (let round = 0; (await first.count()) === 0; round++) {
    await scrollTo(1);
    if (round % 50 === 0) most = Math.max(most, await nodes());
  }
  expect(await page.locator('.scroller table').getAttribute('aria-rowcount')).toBe(String(all + 1));
  most = Math.max(most, await nodes());
  expect(most).toBeLessThan(2 * atFirst);

  // From here any place is a jump away, and its row is drawn where it belongs.
  await scrollTo(0.5);
  await expect
    .poll(() => page.locator('.scroller tbody tr[aria-rowindex]').first().getAttribute('aria-rowindex'))
    .toMatch(/^(49|50)\d{3}$/);
  await scrollTo(0);
  await page.getByRole('link', { name: `call-${all - 1}`, exact: true }).waitFor();
  expect(complaints()).toEqual([]);
  await page.context().close();
}, 900_000);
