/**
 * Pictures of every page of a running Pawl, for docs/screens/: `node --import tsx scripts/screens.ts --url http://127.0.0.1:4700
 * --token TOKEN`. Each page, and the newest record of each kind, light, 1280 px wide; some in the dark and on a telephone too. What
 * Chromium makes of a page with few colours is below 150 kB; `--whole` takes all of each page, to be looked at and not to be kept.
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { enter, openBrowser, pagesOf, settled } from '../test/browser.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:4700' },
    token: { type: 'string' },
    out: { type: 'string', default: 'docs/screens' },
    whole: { type: 'boolean', default: false },
  },
});
const { url, token, out, whole } = values;
if (token === undefined) throw new Error('Give --token: the one behind #token= in the link that the start printed.');
mkdirSync(out, { recursive: true });

type Shot = { readonly name: string; readonly path: string /** Scrolled to. */; readonly to?: string };

/** What the API lists first. */
async function newest(path: string, list: string, field = 'id'): Promise<string | undefined> {
  const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
  const body = (await answer.json()) as Record<string, Record<string, string>[]>;
  return body[list]?.[0]?.[field];
}

const kinds: readonly (readonly [name: string, page: string, path: string, list: string, field?: string])[] = [
  ['conversation', '/collect', '/api/trajectories?minScore=0&limit=1', 'trajectories'],
  ['dataset', '/curate', '/api/datasets?limit=1', 'datasets'],
  ['run', '/train', '/api/runs?limit=1', 'runs'],
  ['report', '/evaluate', '/api/reports?limit=1', 'reports'],
  ['rollout', '/deploy/rollouts', '/api/rollouts?limit=1', 'rollouts'],
  ['release', '/deploy/releases', '/api/releases?limit=1', 'releases', 'name'],
];

async function shots(pages: readonly string[]): Promise<Shot[]> {
  const found: Shot[] = pages.map((path) => ({ name: path === '/' ? 'overview' : path.slice(1), path }));
  for (const [name, page, path, list, field] of kinds) {
    const id = await newest(path, list, field);
    if (id === undefined) continue;
    found.push({ name, path: `${page}/${encodeURIComponent(id)}` });
    if (name === 'run') found.push({ name: 'episodes', path: `${page}/${encodeURIComponent(id)}`, to: 'Episodes' });
  }
  return found;
}

const browser = await openBrowser();

async function take(
  wanted: (all: readonly Shot[]) => readonly Shot[],
  { width = 1280, dark = false, mark = '' }: { width?: number; dark?: boolean; mark?: string } = {},
) {
  const looking = await enter(
    browser,
    { url, token: token! },
    { viewport: { width, height: width < 500 ? 844 : 860 }, colorScheme: dark ? 'dark' : 'light' },
  );
  const { page } = looking;
  for (const { name, path, to } of wanted(await shots(await pagesOf(page)))) {
    await page.goto(url + path);
    await settled(page);
    await page.waitForTimeout(500); // curves are drawn a moment after their data
    if (to !== undefined) {
      await page
        .getByRole('heading', { name: to })
        .evaluate((node) => (node as unknown as { scrollIntoView(): void }).scrollIntoView());
      await page.waitForTimeout(500);
    }
    const file = join(out, `${name}${mark}.png`);
    await page.screenshot({ path: file, fullPage: whole });
    console.log(`${file}  ${Math.round(statSync(file).size / 1024)} kB`);
    for (const complaint of looking.complaints()) console.error(`  ${complaint}`);
  }
  await page.context().close();
}

const some = (all: readonly Shot[]) => all.filter(({ name }) => ['overview', 'run'].includes(name));
await take((all) => all);
await take(whole ? (all) => all : some, { dark: true, mark: '-dark' });
await take(whole ? (all) => all : some, { width: 390, dark: true, mark: '-narrow' });
await browser.close();
