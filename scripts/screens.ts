/**
 * Pictures of every page of a running Pawl, for docs/screens/: `node --import tsx scripts/screens.ts --url http://127.0.0.1:4700
 * --token TOKEN`. Each page once, light, 1280 px wide; the overview in the dark and on a telephone too. Palette PNGs are small; these
 * are what Chromium makes of a page with few colours, mostly below 150 kB.
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
    /** More pages, by their path. */
    page: { type: 'string', multiple: true, default: [] },
  },
});
const { url, token, out, page: more } = values;
if (token === undefined) throw new Error('Give --token: the one behind #token= in the link that the start printed.');
mkdirSync(out, { recursive: true });

const browser = await openBrowser();

async function take(paths: (known: string[]) => string[], width: number, colorScheme: 'light' | 'dark', mark: string) {
  const looking = await enter(
    browser,
    { url, token: token! },
    { viewport: { width, height: width < 500 ? 844 : 860 }, colorScheme },
  );
  for (const path of paths(await pagesOf(looking.page))) {
    await looking.page.goto(url + path);
    await settled(looking.page);
    await looking.page.waitForTimeout(500); // curves are drawn a moment after their data
    const name = `${
      path
        .split('?')[0]!
        .replaceAll(/[^a-z0-9]+/gi, '-')
        .replace(/^-|-$/g, '') || 'overview'
    }${mark}.png`;
    await looking.page.screenshot({ path: join(out, name) });
    console.log(`${join(out, name)}  ${Math.round(statSync(join(out, name)).size / 1024)} kB`);
    for (const complaint of looking.complaints()) console.error(`  ${complaint}`);
  }
  await looking.page.context().close();
}

await take((known) => [...known, ...more], 1280, 'light', '');
await take(() => ['/'], 1280, 'dark', '-dark');
await take(() => ['/'], 390, 'dark', '-narrow');
await browser.close();
