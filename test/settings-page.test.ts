/** docs/settings.md says what the code does. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { routesFile, routesPage } from '../scripts/routes-page.ts';
import { page, pageFrom, settingRows } from '../scripts/settings-page.ts';
import { variables } from '../src/environment.ts';
import { endpoints } from '../src/gateway/door.ts';

const text = readFileSync(page, 'utf8');
const sources = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|js)$/.test(file) && !/\.test\.ts$/.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');

test('the tables of settings and variables are those of the code (`npx tsx scripts/settings-page.ts` writes them)', () => {
  expect(text).toBe(pageFrom(text));
});

test('the page of routes is that of the declarations (`npx tsx scripts/routes-page.ts` writes it)', () => {
  expect(readFileSync(routesFile, 'utf8')).toBe(routesPage());
});

test('every setting has a sentence', () => {
  expect(settingRows().filter(({ sentence }) => !/^[A-Z].*\.$/.test(sentence))).toEqual([]);
});

test('every variable that the code reads is in the list', () => {
  const read = sources('src').matchAll(/env\.(PAWL_[A-Z_]+|[A-Z]+_URL)\b/g);
  expect([...new Set([...read].map(([, name]) => name))].filter((name) => !(name! in variables))).toEqual([]);
});

test('every route and header of the gateway is there', () => {
  const gateway = sources('src/gateway');
  const headers = [...gateway.matchAll(/'(x-pawl-[a-z]+)'/g)].map(([, name]) => name!);
  const routes = [...Object.keys(endpoints), '/feedback', '/outcomes', '/attach', '/models'].map(
    (route) => `/v1${route}`,
  );
  for (const word of [...headers, ...routes, '/healthz', '/readyz', '/metrics', '/t/TRAJECTORY/u/USER/v1'])
    expect(text, `${word} is missing`).toContain(word);
});
