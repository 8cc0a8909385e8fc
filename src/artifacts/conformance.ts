/**
 * What must hold of an artifact store whatever place it keeps its bytes in, as a list of checks: a folder runs them in
 * artifacts.test.ts, a real S3 server in test/artifacts.interop.test.ts. `place` is the store's own, to break things in.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ArtifactError } from '../errors.ts';
import { hashOf, isReference } from './artifact.ts';
import { type Artifacts, createArtifacts } from './artifacts.ts';
import { bytesSource, type Place } from './place.ts';

export type PlaceSubject = {
  /** Each call another one on the same bytes, as another process has it. */
  readonly open: () => Place;
  /** A file larger than this goes up in several parts, where there are parts. */
  readonly partBytes: number;
  /** An empty folder the checks may write to. */
  readonly scratch: string;
};

type Context = PlaceSubject & {
  readonly place: Place;
  /** The store of a machine of this name, with a home of its own. */
  readonly on: (machine: string) => Artifacts;
  /** Makes a folder of files to be kept. */
  readonly folder: (name: string, files: Readonly<Record<string, string | Buffer>>) => Promise<string>;
};

export function artifactConformance(
  factory: () => Promise<PlaceSubject>,
): { readonly name: string; readonly run: () => Promise<void> }[] {
  return Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const subject = await factory();
      const place = subject.open();
      const opened: Artifacts[] = [];
      const on = (machine: string): Artifacts => {
        const home = join(subject.scratch, machine);
        const one = createArtifacts({ place: subject.open(), home, cacheBytes: 1024 ** 3 });
        opened.push(one);
        return one;
      };
      const folder: Context['folder'] = async (called, files) => {
        const at = join(subject.scratch, called);
        for (const [path, content] of Object.entries(files)) {
          await mkdir(join(at, path, '..'), { recursive: true });
          await writeFile(join(at, path), content);
        }
        return at;
      };
      try {
        await check({ ...subject, place, on, folder });
      } finally {
        for (const one of opened) await one.close();
        await place.close();
      }
    },
  }));
}

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
};
const model = { kind: 'model' } as const;
const about = (pattern: RegExp) => (error: unknown) =>
  error instanceof ArtifactError && pattern.test(error.message) && error.message.length > 20;
/** Bytes that differ everywhere, the same for the same number. */
const noise = (size: number, seed = 1): Buffer =>
  Buffer.from(
    Uint32Array.from({ length: Math.ceil(size / 4) }, (_, i) => Math.imul(i + seed, 2654435761) >>> 0).buffer,
  ).subarray(0, size);

const checks: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  'a folder kept by one machine is given to another, byte for byte': async ({ on, folder }) => {
    const source = await folder('source', { 'config.json': '{}', 'deep/weights.bin': noise(70_000), empty: '' });
    const ref = await on('a').add(model, source);
    assert.ok(isReference(ref));
    const dir = await on('b').folder(ref);
    assert.equal(await readFile(join(dir, 'config.json'), 'utf8'), '{}');
    assert.deepEqual(await readFile(join(dir, 'deep/weights.bin')), noise(70_000));
    assert.equal((await readFile(join(dir, 'empty'))).length, 0);
  },
  'a file in several parts, and one of exactly one part, come back as they were': async ({ on, folder, partBytes }) => {
    for (const size of [partBytes, partBytes * 3 + 17]) {
      const ref = await on('a').add(
        { kind: 'dataset' },
        join(await folder(`n${size}`, { 'rows.jsonl': noise(size) }), 'rows.jsonl'),
      );
      assert.deepEqual(await readFile(await on('b').file(ref)), noise(size));
    }
  },
  'the same content is the same artifact, and that of another owner is another': async ({ on, folder }) => {
    const a = on('a');
    const one = await a.add(model, await folder('one', { a: '1', b: '2' }));
    assert.equal(await a.add(model, await folder('two', { b: '2', a: '1' })), one);
    assert.notEqual(await a.add({ ...model, of: 'run-7' }, await folder('three', { a: '1', b: '2' })), one);
    assert.notEqual(await a.add(model, await folder('four', { a: '1', b: '3' })), one);
  },
  'what is there is listed, and gone once it is removed': async ({ on, folder, place }) => {
    const a = on('a');
    const ref = await a.add(model, await folder('one', { a: '1', 'b/c': '2' }));
    assert.equal(await a.has(ref), true);
    assert.deepEqual(
      (await all(a.list())).map(({ reference }) => reference),
      [ref],
    );
    await on('b').folder(ref);
    await a.remove(ref);
    await a.remove(ref);
    assert.equal(await a.has(ref), false);
    assert.deepEqual(await all(place.list('')), []);
    await assert.rejects(a.folder(ref), about(new RegExp(`no ${ref}`)));
  },
  'a flipped byte is an error that names the artifact and the file': async ({ on, folder, place }) => {
    const ref = await on('a').add(model, await folder('one', { 'model.safetensors': noise(5000), other: 'x' }));
    const key = `${hashOf(ref)}/model.safetensors`;
    const spoilt = noise(5000);
    spoilt[2500]! ^= 1;
    await place.write(key, bytesSource(spoilt));
    await assert.rejects(on('b').folder(ref), about(new RegExp(`model.safetensors of ${ref}`)));
    await assert.rejects(on('b').verify(ref), about(new RegExp(`model.safetensors of ${ref}`)));
  },
  'a file that is gone or shorter is an error that names it, and keeping it again mends it': async ({
    on,
    folder,
    place,
  }) => {
    const source = await folder('one', { a: '12345', b: 'x' });
    const ref = await on('a').add(model, source);
    await place.write(`${hashOf(ref)}/a`, bytesSource(Buffer.from('123')));
    await assert.rejects(on('b').folder(ref), about(new RegExp(`a of ${ref}`)));
    await place.remove(`${hashOf(ref)}/a`);
    await assert.rejects(on('b').folder(ref), about(new RegExp(`a of ${ref}`)));
    assert.equal(await on('b').has(ref), false);
    assert.equal(await on('a').add(model, source), ref);
    await on('c').folder(ref);
  },
  'a changed manifest is an error': async ({ on, folder, place }) => {
    const ref = await on('a').add(model, await folder('one', { a: '1' }));
    await place.write(`${hashOf(ref)}.json`, bytesSource(Buffer.from('{"kind":"model"}')));
    await assert.rejects(on('b').folder(ref), about(/manifest/));
  },
  'what is interrupted before its end is not there, and is finished by the next': async ({ on, folder, place }) => {
    const source = await folder('one', { a: '1', b: '2' });
    const ref = await on('a').add(model, source);
    await place.remove(`${hashOf(ref)}.json`); // as if the writer had been killed before its last write
    await place.remove(`${hashOf(ref)}/b`);
    assert.equal(await on('b').has(ref), false);
    assert.deepEqual(await all(on('b').list()), []);
    assert.deepEqual(await all(on('b').leftovers(Date.now() + 60_000)), [`${hashOf(ref)}/a`]);
    assert.deepEqual(await all(on('b').leftovers(Date.now() - 60_000)), []);
    assert.equal(await on('a').add(model, source), ref);
    await on('b').folder(ref);
  },
  'an upload that is given up leaves nothing under its key': async ({ place, partBytes }) => {
    const bytes = noise(partBytes * 2);
    const key = `${bytesSource(bytes).sha256}/weights`;
    const stop = new AbortController();
    const source = bytesSource(bytes);
    const read = async (start: number, length: number) => {
      stop.abort(new Error('given up'));
      return source.read(start, length);
    };
    await assert.rejects(place.write(key, { ...source, read }, stop.signal));
    assert.equal(await place.stat(key), null);
    await assert.rejects(place.write(key, { ...source, sha256: '0'.repeat(64) }), about(/changed while/));
    assert.equal(await place.stat(key), null);
  },
  'many writers and readers of the same content at once end with one whole artifact': async ({ on, folder }) => {
    const source = await folder('one', { a: noise(300_000), 'b/c': noise(1000, 7) });
    const refs = await Promise.all(Array.from({ length: 6 }, (_, i) => on(`m${i % 3}`).add(model, source)));
    assert.equal(new Set(refs).size, 1);
    const dirs = await Promise.all(Array.from({ length: 6 }, (_, i) => on(`m${i % 3}`).folder(refs[0]!)));
    for (const dir of dirs) assert.deepEqual(await readFile(join(dir, 'a')), noise(300_000));
    assert.equal((await all(on('a').list())).length, 1);
  },
  'what an artifact needs comes with it and lies beside it': async ({ on, folder }) => {
    const base = await on('a').add(model, await folder('base', { w: 'base' }));
    const adapter = await on('a').add(
      { kind: 'checkpoint', of: 'run-7', needs: [base] },
      await folder('adapter', { w: 'adapter' }),
    );
    const dir = await on('b').folder(adapter);
    assert.equal(await readFile(join(dir, '..', hashOf(base), 'w'), 'utf8'), 'base');
  },
  'a moved folder is kept, found here, and gone from where it was': async ({ on }) => {
    const a = on('a');
    const draft = await a.draft();
    await mkdir(join(draft, 'deep'), { recursive: true });
    await writeFile(join(draft, 'deep/w'), noise(9000));
    const ref = await a.add({ kind: 'checkpoint', of: 'run-7' }, draft, { move: true });
    await assert.rejects(readFile(join(draft, 'deep/w')));
    for (const one of [a, on('b')])
      assert.deepEqual(await readFile(join(await one.folder(ref), 'deep/w')), noise(9000));
  },
  'names that lead elsewhere, or that some disk does not take, are refused': async ({ place, on, folder }) => {
    const hash = '0'.repeat(64);
    for (const key of [
      ...['', 'a', '../a', `${hash}`, `${hash}/`, `${hash}/../x`, `${hash}/a/../../x`, `${hash}//a`, `/${hash}/a`],
      ...[
        `${hash}/a\\b`,
        `${hash}/a\0`,
        `${hash}/.hidden`,
        `${hash}.json/../x`,
        `${hash}/${'a/'.repeat(9)}a`,
        `${hash}/${'a'.repeat(600)}`,
      ],
    ])
      await assert.rejects(place.write(key, bytesSource(Buffer.from('x'))), about(/no key/), key);
    assert.deepEqual(await all(place.list('')), []);
    await assert.rejects(
      on('a').add(model, await folder('odd', { 'a:b': '1' })),
      about(/cannot be kept under its name/),
    );
    assert.equal(isReference(`artifact:${'0'.repeat(63)}/`), false);
  },
  'a store can be tried without a trace': async ({ on, place }) => {
    await on('a').probe();
    assert.deepEqual(await all(place.list('')), []);
  },
};
