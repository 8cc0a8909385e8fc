/** `npm run bench -- NAME [options]` runs bench/NAME.ts; its last line of output is one JSON object of figures. */
import { existsSync, readdirSync } from 'node:fs';
import { register } from 'tsx/esm/api';

const folder = new URL('../bench/', import.meta.url);
const [name = '', ...rest] = process.argv.slice(2);
const file = new URL(`${name}.ts`, folder);
if (!/^[a-z-]+$/.test(name) || !existsSync(file)) {
  const names = readdirSync(folder)
    .filter((f) => f.endsWith('.ts'))
    .map((f) => f.slice(0, -3));
  console.error(`usage: npm run bench -- NAME, where NAME is one of: ${names.join(', ')}`);
  process.exit(name === '' || name === '--help' ? 0 : 2);
}
process.argv.splice(2, Infinity, ...rest.filter((a, i) => !(i === 0 && a === '--')));
register();
await import(file.href);
