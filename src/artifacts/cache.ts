/**
 * Copies of artifacts on this machine, for what has to be a file. `HASH/` holds the files, `HASH.json` the manifest; the manifest
 * is written when the folder is in its place, so a copy that has one is whole, and two processes that fetch the same end
 * with one copy. `HASH.pin-PID` says that a process may still read it. Beyond the bound the copies that were not asked
 * for longest go first, except those of living processes. A copy that is damaged is dropped and fetched again.
 */
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isAlive, syncFolder } from '../durable.ts';
import { ArtifactError } from '../errors.ts';
import { hashOf, type Manifest, parseManifest, sizeOf } from './artifact.ts';
import { checkFiles } from './check.ts';
import { draftName } from './drafts.ts';

type Copy = { readonly dir: string; readonly manifest: Manifest };

export type Cache = {
  /** The copy, every byte checked; null: there is none. */
  find(ref: string): Promise<Copy | null>;
  /** Takes a folder whose files were checked, and says where the copy is. */
  put(ref: string, text: string, folder: string): Promise<string>;
  /** Takes what was just kept from here as its copy. */
  adopt(ref: string, text: string, manifest: Manifest, source: string): Promise<void>;
  drop(ref: string): Promise<void>;
  tidy(isThere: (ref: string) => Promise<boolean>): Promise<void>;
  close(): Promise<void>;
};

export function openCache(root: string, mostBytes: number): Cache {
  const pinned = new Set<string>();
  const dirOf = (hash: string) => join(root, hash);
  const manifestAt = (hash: string) => join(root, `${hash}.json`);
  const pinAt = (hash: string) => join(root, `${hash}.pin-${process.pid}`);

  async function pin(hash: string): Promise<void> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    await writeFile(pinAt(hash), '');
    pinned.add(hash);
  }

  async function read(hash: string): Promise<Copy | null> {
    const text = await readFile(manifestAt(hash), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (text === null) return null;
    return { dir: dirOf(hash), manifest: parseManifest(`artifact:${hash}`, text, root) };
  }

  async function find(ref: string): Promise<Copy | null> {
    const hash = hashOf(ref);
    await pin(hash);
    try {
      const copy = await read(hash);
      if (copy === null) return null;
      await checkFiles(ref, copy.dir, copy.manifest);
      const now = new Date();
      await utimes(manifestAt(hash), now, now).catch(() => {});
      return copy;
    } catch (error) {
      if (!(error instanceof ArtifactError)) throw error;
      await forget(hash);
      await pin(hash);
      return null;
    }
  }

  async function put(ref: string, text: string, folder: string): Promise<string> {
    const hash = hashOf(ref);
    await pin(hash);
    const dir = dirOf(hash);
    const manifest = parseManifest(ref, text, root);
    for (let attempt = 1; ; attempt++) {
      try {
        await syncFolder(folder);
        await rename(folder, dir);
        break;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'EPERM') throw error;
        // Another process was first; or one was killed before it wrote the manifest, or the disk has lost something.
        const isWhole = await checkFiles(ref, dir, manifest).then(
          () => true,
          () => false,
        );
        if (isWhole) break;
        if (attempt === 5) throw error;
        await rm(dir, { recursive: true, force: true });
      }
    }
    await syncFolder(root);
    const aside = join(root, draftName());
    const file = await open(aside, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(aside, manifestAt(hash));
    await syncFolder(root);
    await shrink();
    return dir;
  }

  const forget = async (hash: string): Promise<void> => {
    await rm(manifestAt(hash), { force: true });
    await rm(dirOf(hash), { recursive: true, force: true });
    await rm(pinAt(hash), { force: true });
    pinned.delete(hash);
  };

  /** What a living process may read. The pins of those that are gone go too. */
  async function inUse(names: readonly string[]): Promise<ReadonlySet<string>> {
    const used = new Set<string>();
    for (const name of names) {
      const [, hash, pid] = /^([0-9a-f]{64})\.pin-(\d+)$/.exec(name) ?? [];
      if (hash === undefined) continue;
      if (isAlive(Number(pid))) used.add(hash);
      else await rm(join(root, name), { force: true });
    }
    return used;
  }

  async function shrink(): Promise<void> {
    const names = await readdir(root).catch(() => []);
    const used = await inUse(names);
    const copies: { hash: string; bytes: number; at: number }[] = [];
    for (const name of names) {
      if (!/^[0-9a-f]{64}\.json$/.test(name)) continue;
      const hash = basename(name, '.json');
      const at = (await stat(join(root, name)).catch(() => null))?.mtimeMs;
      const copy = await read(hash).catch(() => null);
      if (at === undefined) continue;
      if (copy === null) await forget(hash);
      else copies.push({ hash, bytes: sizeOf(copy.manifest), at });
    }
    let total = copies.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { hash, bytes } of copies.sort((a, b) => a.at - b.at)) {
      if (total <= mostBytes) return;
      if (used.has(hash)) continue;
      await forget(hash);
      total -= bytes;
    }
  }

  return {
    find,
    put,
    async adopt(ref, text, manifest, source) {
      // A folder keeps its form; a single file, or one with names that were left out, is fetched when it is asked for.
      if (!(await stat(source)).isDirectory() || (await find(ref)) !== null) return;
      const names = await readdir(source, { recursive: true, withFileTypes: true });
      if (names.filter((entry) => !entry.isDirectory()).length !== manifest.files.length) return;
      await put(ref, text, source).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EXDEV') throw error;
      });
    },
    drop: (ref) => forget(hashOf(ref)),
    async tidy(isThere) {
      for (const name of await readdir(root).catch(() => []))
        if (/^[0-9a-f]{64}\.json$/.test(name) && !(await isThere(`artifact:${basename(name, '.json')}`)))
          await forget(basename(name, '.json'));
      await shrink();
    },
    async close() {
      for (const hash of pinned) await rm(pinAt(hash), { force: true });
      pinned.clear();
    },
  };
}
