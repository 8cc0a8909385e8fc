/**
 * Lets a settings file anywhere on the disk `import … from 'pawl'` and get this installation (index.ts), whether or not the
 * package can be found from its folder. Both ways in are needed: files of a package that does not say "type": "module" are
 * loaded as CommonJS.
 */
import Module, { register } from 'node:module';
import { fileURLToPath } from 'node:url';

const index = new URL('./index.ts', import.meta.url).href;
const hook = `export const resolve = (name, context, next) => next(name === 'pawl' ? ${JSON.stringify(index)} : name, context);`;

type Resolver = { _resolveFilename(request: string, ...rest: unknown[]): string };
let done = false;

export function makeImportable(): void {
  if (done) return;
  done = true;
  register(`data:text/javascript,${encodeURIComponent(hook)}`, import.meta.url);
  const resolver = Module as unknown as Resolver;
  const before = resolver._resolveFilename;
  resolver._resolveFilename = function (request, ...rest) {
    return request === 'pawl' ? fileURLToPath(index) : before.call(this, request, ...rest);
  };
}
