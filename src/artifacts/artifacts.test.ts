import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createArtifacts } from './artifacts.ts';
import { artifactConformance } from './conformance.ts';
import { folderPlace } from './folder-place.ts';
import { openArtifacts } from './open.ts';
import type { Place } from './place.ts';

const scratch = mkdtempSync(join(tmpdir(), 'pawl-artifacts-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
let made = 0;
const fresh = () => join(scratch, String(++made));

/** As a place that is no folder has it: everything goes through the cache. */
const remote = (folder: string): Place => ({ ...folderPlace(folder), folder: null });

const folderWith = (files: Readonly<Record<string, string>>): string => {
  const at = fresh();
  mkdirSync(at, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), text);
  return at;
};

describe.each([
  ['a folder', folderPlace],
  ['a place that is no folder', remote],
])('an artifact store in %s', (_, open) => {
  const checks = artifactConformance(async () => {
    const at = fresh();
    mkdirSync(join(at, 'machines'), { recursive: true });
    return { open: () => open(join(at, 'store')), partBytes: 4096, scratch: join(at, 'machines') };
  });
  for (const { name, run } of checks) it(name, run);
});

describe('paths', () => {
  it('a path from before there were artifacts is taken as it is; a relative one is below the home', async () => {
    const home = fresh();
    const artifacts = openArtifacts({ home });
    expect(await artifacts.folder('/models/base')).toBe('/models/base');
    expect(await artifacts.file(join('datasets', 'desk-v3.jsonl'))).toBe(join(home, 'datasets', 'desk-v3.jsonl'));
  });
});

describe('the cache', () => {
  const setUp = (cacheBytes: number) => {
    const [store, home] = [fresh(), fresh()];
    let isAway = false;
    const place = remote(store);
    const open = () =>
      createArtifacts({
        place: {
          ...place,
          read: (key, signal) => {
            if (isAway) throw new Error('the place is away');
            return place.read(key, signal);
          },
        },
        home,
        cacheBytes,
      });
    return {
      open,
      home,
      cached: () => readdirSync(join(home, 'cache')).filter((name) => /^\w{64}$/.test(name)),
      leave: () => (isAway = true),
    };
  };

  it('gives what it has while the place is away', async () => {
    const { open, leave } = setUp(1024);
    const artifacts = open();
    const ref = await artifacts.add({ kind: 'model' }, folderWith({ a: '1' }));
    const dir = await artifacts.folder(ref);
    leave();
    expect(await artifacts.folder(ref)).toBe(dir);
    expect(await open().folder(ref)).toBe(dir);
  });

  it('fetches again what is damaged in it, and says so where that cannot be', async () => {
    const { open, leave } = setUp(1024);
    const artifacts = open();
    const ref = await artifacts.add({ kind: 'model' }, folderWith({ a: '1' }));
    const dir = await artifacts.folder(ref);
    writeFileSync(join(dir, 'a'), '2');
    expect(await artifacts.folder(ref)).toBe(dir);
    await artifacts.folder(ref);
    writeFileSync(join(dir, 'a'), '2');
    leave();
    await expect(artifacts.folder(ref)).rejects.toThrow('away');
  });

  it('stays within its bound, the least used going first, and keeps what a living process uses', async () => {
    const { open, cached } = setUp(25);
    const writer = open();
    const refs = [];
    for (const letter of ['a', 'b', 'c', 'd'])
      refs.push(await writer.add({ kind: 'model' }, folderWith({ w: letter.repeat(10) })));
    for (const ref of refs.slice(0, 3)) {
      const process = open();
      await process.folder(ref);
      await process.close(); // nobody reads it any more
    }
    expect(
      cached()
        .map((hash) => `artifact:${hash}`)
        .sort(),
    ).toEqual([refs[1], refs[2]].sort());
    const [one, two] = [open(), open()];
    await one.folder(refs[1]!);
    await one.folder(refs[2]!);
    await two.folder(refs[3]!);
    expect(cached()).toHaveLength(3);
    await one.close();
    await two.close();
    await open().tidy();
    expect(cached()).toHaveLength(2);
  });

  it('forgets what was removed from the place by somebody else', async () => {
    const { open, cached } = setUp(1024);
    const [one, two] = [open(), open()];
    const ref = await one.add({ kind: 'dataset', of: 'desk' }, folderWith({ rows: 'secret' }));
    await one.folder(ref);
    const elsewhere = createArtifacts({ place: remote(one.where), home: fresh(), cacheBytes: 1024 });
    await elsewhere.remove(ref);
    expect(cached()).toHaveLength(1);
    await two.tidy();
    expect(cached()).toHaveLength(0);
  });
});
