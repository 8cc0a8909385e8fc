import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { createOnnxEngine } from './engine/onnx/engine.ts';
import { ConfigError } from './errors.ts';
import { weighted } from './score/weighted.ts';
import { importUserModule } from './user-module.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-user-module-')));
afterAll(() => rmSync(root, { recursive: true }));

/** A folder of these files, the first of which is the one to load. */
function write(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(root, 'project-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return join(folder, Object.keys(files)[0]!);
}

test.each(['module', 'commonjs', null])(
  'what a file imports from pawl is this installation (type: %s)',
  async (type) => {
    const path = write({
      'pawl.config.ts': `
      import { weighted, type Scorer } from 'pawl';
      import { createOnnxEngine } from 'pawl/engine';
      const scorer: Scorer | null = null;
      export default { weighted, createOnnxEngine, scorer };`,
      ...(type === null ? {} : { 'package.json': JSON.stringify({ type }) }),
    });
    expect(await importUserModule(path)).toMatchObject({ default: { weighted, createOnnxEngine, scorer: null } });
  },
);

test('a file may import others, data and packages, wait, and know where it is', async () => {
  const path = write({
    'agents/desk.ts': `
      import { readFileSync } from 'node:fs';
      import path from 'node:path';
      import plain from 'plain';
      import { modern } from 'modern';
      import { weighted } from 'pawl';
      import { shop } from '../shop/shop.ts';
      import { asBuilt } from '../shop/as-built.js';
      import data from '../shop/data.json';
      export const text = readFileSync(new URL('../shop/data.json', import.meta.url), 'utf8');
      export const later = await Promise.resolve('later');
      export const again = (await import('../shop/shop.ts')).shop === shop;
      export { asBuilt, data, modern, plain, shop, weighted };
      export const sep = path.sep;
      export const here = import.meta.url;
      export const folder = import.meta.dirname;`,
    'package.json': '{"type": "module"}',
    'shop/shop.ts': `import { weighted } from 'pawl';\nexport const shop = { weighted };`,
    'shop/as-built.ts': 'export const asBuilt: number = 1;',
    'shop/data.json': '{"orders": 3}',
    'node_modules/plain/package.json': '{"name": "plain", "main": "index.js"}',
    'node_modules/plain/index.js': 'module.exports = { plain: true };',
    'node_modules/modern/package.json': '{"name": "modern", "type": "module", "exports": "./index.js"}',
    'node_modules/modern/index.js': 'export const modern = true; export default null;',
  });
  const loaded = await importUserModule(path);
  expect({ ...loaded, data: { ...(loaded.data as object) } }).toMatchObject({
    text: '{"orders": 3}',
    later: 'later',
    again: true,
    asBuilt: 1,
    data: { orders: 3 },
    modern: true,
    plain: { plain: true },
    shop: { weighted },
    weighted,
    sep: '/',
    here: pathToFileURL(path).href,
    folder: dirname(path),
  });
});

test('a file that is loaded twice is one module', async () => {
  const path = write({ 'desk.ts': 'export const desk = {};' });
  expect((await importUserModule(path)).desk).toBe((await importUserModule(path)).desk);
});

test('says which file is wrong and where', async () => {
  const gone = join(root, 'gone.ts');
  await expect(importUserModule(gone)).rejects.toThrow(new ConfigError(`There is no file ${gone}.`));
  const unreadable = write({ 'desk.ts': 'export default {\n  name: desk desk\n};' });
  await expect(importUserModule(unreadable)).rejects.toThrow(/desk\.ts cannot be loaded: .*desk\.ts:2:/s);
  const throwing = write({
    'pawl.config.ts': `import './reward.ts';`,
    'reward.ts': `import { weighted } from 'pawl';\n\nexport const reward = weighted({});`,
  });
  await expect(importUserModule(throwing)).rejects.toThrow(
    /pawl\.config\.ts cannot be loaded: A reward spec needs at least one part.*reward\.ts:3:/s,
  );
  const missing = write({ 'desk.ts': `import './absent.ts';` });
  await expect(importUserModule(missing)).rejects.toThrow(
    /desk\.ts cannot be loaded: Cannot find module '\.\/absent\.ts'/,
  );
});
