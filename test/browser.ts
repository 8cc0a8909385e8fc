/** A real Chromium from npm, for tests of the dashboard. What a page complains of is kept, and axe looks at what it shows. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import chromium from '@sparticuz/chromium';
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core';
import { buildDashboard, isDashboardBuilt } from '../scripts/dashboard.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The dashboard as it is in this clone, and a browser to look at it. */
export async function openBrowser(): Promise<Browser> {
  if (!isDashboardBuilt()) await buildDashboard();
  // Not the package's own arguments: they switch off what keeps pages apart, and the policy of ours is part of the test.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none'];
  return playwright.launch({ executablePath: await chromium.executablePath(), args });
}

export type Looking = {
  readonly page: Page;
  /** What the browser had to complain of, and what the server refused, since the last time somebody asked. */
  complaints(): string[];
};

/** A window in which somebody has followed the link that a start prints. */
export async function enter(
  browser: Browser,
  { url, token }: { readonly url: string; readonly token: string },
  options: BrowserContextOptions = {},
): Promise<Looking> {
  const page = await (await browser.newContext(options)).newPage();
  let heard: string[] = [];
  page.on('console', (message) => message.type() === 'error' && heard.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
  page.on('response', (answer) => answer.status() >= 400 && heard.push(`${answer.status()} ${answer.url()}`));
  page.on('request', (asked) => !asked.url().startsWith(url) && heard.push(`asked elsewhere: ${asked.url()}`));
  await page.goto(`${url}/#token=${token}`);
  await page.waitForSelector('nav[aria-label=Pages]');
  return {
    page,
    complaints: () => {
      const all = heard;
      heard = [];
      return all;
    },
  };
}

/** Until everything that was asked for is shown. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector('main h1');
  await page.waitForSelector('.bone', { state: 'detached' });
}

/** What axe finds wrong, a line each, and whether the page is wider than its window. */
export async function look(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  type Found = { id: string; nodes: { target: string[]; any: { message: string }[] }[] };
  const { violations } = await page.evaluate<{ violations: Found[] }>('axe.run()');
  const wide = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  return [
    ...violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.target.join(' ')} ${nodes[0]?.any[0]?.message ?? ''}`),
    ...(wide > 0 ? [`the page is ${wide} px wider than its window`] : []),
  ];
}

/** Where the navigation leads. */
export const pagesOf = (page: Page): Promise<string[]> =>
  page.$$eval('nav[aria-label=Pages] a', (links) => links.map((link) => link.getAttribute('href') ?? ''));
