/**
 * The artifact store: keeps folders and files by their content and gives them back as files, checked. Bytes lie in a place
 * (place.ts): `HASH.json` is the manifest, `HASH/…` are the files. The manifest is written last and removed first, so what
 * has one is whole; files without one are somebody's interrupted work, which the next writer of the same content finishes
 * and prune.ts clears away.
 *
 * What has to be a file on this machine is read from the place where that is a folder, and else from a cache under the
 * home (cache.ts). Either way every byte is compared with the manifest before the path is handed out.
 *
 * What is no reference is a path, of an installation from before there were artifacts or of a user's own file, and is
 * taken as it is; a relative one is below the home.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { ArtifactError } from '../errors.ts';
import {
  type ArtifactFile,
  type ArtifactKind,
  hashOf,
  isFilePath,
  isReference,
  limits,
  type Manifest,
  manifestSchema,
  manifestText,
  parseManifest,
  reference,
  referenceOf,
} from './artifact.ts';
import { type Cache, openCache } from './cache.ts';
import { checkFiles, measure, spoilt, wayOut } from './check.ts';
import { draftName, dropStaleDrafts } from './drafts.ts';
import { bytesSource, type Place, withFileSource } from './place.ts';

export type About = {
  readonly kind: ArtifactKind;
  /** Whose it is, where the same bytes of another are another artifact. */
  readonly of?: string;
  readonly needs?: readonly string[];
};

export type AddOptions = {
  readonly move?: boolean;
  /** What a single file is called in it; without this as it is called now. */
  readonly as?: string;
  readonly signal?: AbortSignal;
};

export type Listed = {
  readonly reference: string;
  /** When it was last kept, ms since epoch. */
  readonly at: number;
};

export type Artifacts = {
  /** For people: a path, or s3://bucket/prefix. */
  readonly where: string;
  /** Pawl's own folder on this machine. */
  readonly home: string;
  /** A path for a folder that is about to be kept, beside those of other artifacts: an adapter finds its base from there. */
  draft(): Promise<string>;
  /**
   * Keeps a folder with all its files, or one file, and returns the reference. The same content again gives the same. With
   * `move`, nobody needs the source afterwards, and it may be taken instead of copied.
   */
  add(about: About, source: string, options?: AddOptions): Promise<string>;
  /** The folder of a reference on this machine, every byte checked; a path is given back as it is. */
  folder(where: string): Promise<string>;
  /** The same for an artifact of one file. */
  file(where: string): Promise<string>;
  /** Whether it is whole as far as sizes tell. */
  has(reference: string): Promise<boolean>;
  manifest(reference: string): Promise<Manifest>;
  /** Reads every byte of it in the place itself; throws what is wrong. */
  verify(reference: string, signal?: AbortSignal): Promise<Manifest>;
  /** Nothing of it is left, here and in the place. One that is not there is fine too. */
  remove(reference: string): Promise<void>;
  list(): AsyncGenerator<Listed>;
  /** Files without a manifest that are older than a moment: the key of each. */
  leftovers(before: number): AsyncGenerator<string>;
  removeLeftover(key: string): Promise<void>;
  /** Forgets cached copies of what is in the place no more, and the least used beyond the cache's bound. */
  tidy(): Promise<void>;
  /** Writes, reads and removes something, and says what went wrong. */
  probe(): Promise<void>;
  close(): Promise<void>;
};

type Local = { readonly dir: string; readonly manifest: Manifest };

export function createArtifacts(given: {
  readonly place: Place;
  readonly home: string;
  readonly cacheBytes: number;
}): Artifacts {
  const { place } = given;
  const home = resolve(given.home);
  const root = place.folder ?? join(home, 'cache');
  const cache: Cache | null = place.folder === null ? openCache(root, given.cacheBytes) : null;
  const fetching = new Map<string, Promise<Local>>();

  async function readManifest(ref: string): Promise<Manifest> {
    const parts: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const part of place.read(`${hashOf(ref)}.json`)) {
        bytes += part.length;
        if (bytes > limits.manifestBytes)
          throw new ArtifactError(`The manifest of ${ref} in ${place.name} is larger than any that Pawl writes.`);
        parts.push(part);
      }
    } catch (error) {
      if (error instanceof ArtifactError && error.missing)
        throw new ArtifactError(
          `There is no ${ref} in ${place.name}. ${wayOut} If it was kept somewhere else, \`artifacts\` in pawl.config.ts says where.`,
          { missing: true, cause: error },
        );
      throw error;
    }
    return parseManifest(ref, Buffer.concat(parts).toString(), place.name);
  }

  /** Which files of it are not in the place, or not whole. */
  async function lacking(hash: string, { files }: Manifest): Promise<readonly ArtifactFile[]> {
    const sizes = new Map<string, number>();
    for await (const { key, size } of place.list(`${hash}/`)) sizes.set(key, size);
    return files.filter(({ path, size }) => sizes.get(`${hash}/${path}`) !== size);
  }

  async function add(
    { kind, of = '', needs = [] }: About,
    source: string,
    { move = false, as = basename(source), signal }: AddOptions = {},
  ): Promise<string> {
    const found = await filesOf(source, as);
    const files: ArtifactFile[] = [];
    for (const { path, at } of found) files.push({ path, ...(await measure(at, signal)) });
    const manifest = manifestSchema.parse({ kind, of, needs, files });
    const text = manifestText(manifest);
    const ref = referenceOf(text);
    const hash = hashOf(ref);
    for (const { path, size, sha256 } of await lacking(hash, manifest)) {
      const { at } = found.find((one) => one.path === path)!;
      await withFileSource(at, { size, sha256, move: move && place.folder !== null }, (bytes) =>
        place.write(`${hash}/${path}`, bytes, signal),
      );
    }
    // Written even where it is there already: what was kept just now is no day old, so nobody clears it away.
    await place.write(`${hash}.json`, bytesSource(Buffer.from(text)), signal);
    if (move && cache !== null) await cache.adopt(ref, text, manifest, source);
    if (move) await rm(source, { recursive: true, force: true });
    return ref;
  }

  /** The folder that holds its files here, whatever it takes to get them. */
  async function local(ref: string): Promise<Local> {
    const hash = hashOf(ref);
    if (cache === null) {
      const manifest = await readManifest(ref);
      const dir = join(root, hash);
      await checkFiles(ref, dir, manifest);
      return { dir, manifest };
    }
    const known = await cache.find(ref);
    if (known !== null) return known;
    const manifest = await readManifest(ref);
    const into = join(root, draftName());
    try {
      for (const file of manifest.files) await fetchFile(ref, file, into);
      const dir = await cache.put(ref, manifestText(manifest), into);
      return { dir, manifest };
    } finally {
      await rm(into, { recursive: true, force: true });
    }
  }

  async function fetchFile(ref: string, { path, size, sha256 }: ArtifactFile, into: string): Promise<void> {
    const to = join(into, ...path.split('/'));
    await mkdir(join(to, '..'), { recursive: true, mode: 0o700 });
    const file = await open(to, 'wx', 0o600);
    try {
      const digest = createHash('sha256');
      let at = 0;
      for await (const chunk of place.read(`${hashOf(ref)}/${path}`)) {
        digest.update(chunk);
        if (at + chunk.length > size) throw spoilt(ref, path, place.name);
        for (let done = 0; done < chunk.length; )
          done += (await file.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
        at += chunk.length;
      }
      if (at !== size || digest.digest('hex') !== sha256) throw spoilt(ref, path, place.name);
      await file.sync();
    } catch (error) {
      throw error instanceof ArtifactError && error.missing ? spoilt(ref, path, place.name, error) : error;
    } finally {
      await file.close();
    }
  }

  /** With all that it needs, which lies beside it. */
  async function fetched(ref: string): Promise<Local> {
    const found = await local(ref);
    for (const need of found.manifest.needs) await once(need);
    return found;
  }

  /** Whoever asks at the same time waits for the same. */
  function once(ref: string): Promise<Local> {
    const under = fetching.get(ref) ?? fetched(ref).finally(() => fetching.delete(ref));
    fetching.set(ref, under);
    return under;
  }

  async function verify(ref: string, signal?: AbortSignal): Promise<Manifest> {
    const manifest = await readManifest(ref);
    for (const { path, size, sha256 } of manifest.files) {
      const digest = createHash('sha256');
      let bytes = 0;
      try {
        for await (const chunk of place.read(`${hashOf(ref)}/${path}`, signal)) {
          digest.update(chunk);
          bytes += chunk.length;
        }
      } catch (error) {
        throw error instanceof ArtifactError && error.missing ? spoilt(ref, path, place.name, error) : error;
      }
      if (bytes !== size || digest.digest('hex') !== sha256) throw spoilt(ref, path, place.name);
    }
    return manifest;
  }

  async function remove(ref: string): Promise<void> {
    const hash = hashOf(ref);
    await place.remove(`${hash}.json`);
    const keys: string[] = [];
    for await (const { key } of place.list(`${hash}/`)) keys.push(key);
    for (const key of keys) await place.remove(key);
    await cache?.drop(ref);
  }

  return {
    where: place.name,
    home,
    async draft() {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await dropStaleDrafts(root, Date.now());
      return join(root, draftName());
    },
    add,
    folder: async (where) => (isReference(where) ? (await once(where)).dir : resolve(home, where)),
    async file(where) {
      if (!isReference(where)) return resolve(home, where);
      const { dir, manifest } = await once(where);
      const [file, another] = manifest.files;
      if (another !== undefined)
        throw new ArtifactError(`${where} is a folder of ${manifest.files.length} files, where one file is wanted.`);
      return join(dir, ...file!.path.split('/'));
    },
    async has(ref) {
      try {
        return (await lacking(hashOf(ref), await readManifest(ref))).length === 0;
      } catch (error) {
        if (error instanceof ArtifactError && error.missing) return false;
        throw error;
      }
    },
    manifest: readManifest,
    verify,
    remove,
    async *list() {
      for await (const { key, at } of place.list('')) {
        const ref = `artifact:${key.slice(0, -'.json'.length)}`;
        if (key.endsWith('.json') && reference.safeParse(ref).success) yield { reference: ref, at };
      }
    },
    async *leftovers(before) {
      const whole = new Map<string, boolean>();
      for await (const { key, at } of place.list('')) {
        const [, hash] = /^([0-9a-f]{64})\//.exec(key) ?? [];
        if (hash === undefined || at >= before) continue;
        if (!whole.has(hash)) whole.set(hash, (await place.stat(`${hash}.json`)) !== null);
        if (!whole.get(hash)) yield key;
      }
    },
    removeLeftover: (key) => place.remove(key),
    async tidy() {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await dropStaleDrafts(root, Date.now());
      await cache?.tidy(async (ref) => (await place.stat(`${hashOf(ref)}.json`)) !== null);
    },
    async probe() {
      const bytes = Buffer.from(`Pawl tries whether it can write here. ${new Date().toISOString()} ${draftName()}\n`);
      const source = bytesSource(bytes);
      const key = `${source.sha256}/probe`;
      await place.write(key, source);
      try {
        const back: Buffer[] = [];
        for await (const chunk of place.read(key)) back.push(chunk);
        if (!Buffer.concat(back).equals(bytes))
          throw new ArtifactError(`What was written to ${place.name} did not come back as it was.`);
      } finally {
        await place.remove(key);
      }
      if ((await place.stat(key)) !== null)
        throw new ArtifactError(`What was removed from ${place.name} is still there.`);
    },
    async close() {
      await Promise.allSettled(fetching.values());
      await cache?.close();
      await place.close();
    },
  };
}

/** Every file of a folder by its path below it, or the one file by its name. Names with a dot before them are no part of it. */
async function filesOf(source: string, as: string): Promise<readonly { readonly path: string; readonly at: string }[]> {
  const found = await stat(source).catch((cause: unknown) => {
    throw new ArtifactError(`${source} cannot be kept: ${(cause as Error).message}.`, { cause });
  });
  if (found.isFile()) return [{ path: checkPath(as, source), at: source }];
  const files: { path: string; at: string }[] = [];
  const walk = async (folder: string, below: string): Promise<void> => {
    for (const name of (await readdir(folder)).sort()) {
      if (name.startsWith('.')) continue;
      const at = join(folder, name);
      const path = checkPath(below + name, at);
      // Through links: models are often folders of them.
      const entry = await stat(at);
      if (entry.isDirectory()) await walk(at, `${path}/`);
      else if (entry.isFile()) files.push({ path, at });
      if (files.length > limits.files)
        throw new ArtifactError(`${source} has more than ${limits.files} files; is it the right folder?`);
    }
  };
  await walk(source, '');
  if (files.length === 0) throw new ArtifactError(`${source} cannot be kept: it holds no files.`);
  return files;
}

function checkPath(path: string, at: string): string {
  if (isFilePath(path)) return path;
  throw new ArtifactError(
    `${JSON.stringify(at)} cannot be kept under its name: at most ${limits.depth} folders deep, ${limits.pathBytes} bytes, and without control characters and \\ : * ? " < > |. Rename it.`,
  );
}
