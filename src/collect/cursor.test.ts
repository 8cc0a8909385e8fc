/**
 * Cursors and folders as no Pawl leaves them. Whatever is found, each entry reaches the sink, and what was found is said.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeLine } from '../store/line.ts';
import { resumeAt, writeCursor } from './cursor.ts';
import { entryId, entryOf } from './fixtures/file-sink.ts';
import { type Journal, openJournal } from './journal.ts';
import { encodeRecord, NAME_BYTES } from './journal-record.ts';
import { type Pump, startPump } from './pump.ts';
import { findSegments, segmentPath } from './segments.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pawl-cursor-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const line = (id: string) =>
  encodeLine({ kind: 'attachment', attachment: { agent: 'a', key: id, trajectory: 't', turn: null, at: 0 } });

/** What the sink has, each entry once, as the database does it. */
const rows = new Set<string>();
beforeEach(() => rows.clear());

/** One life of a process: appends, perhaps waits until the sink has all, ends in order. */
async function live(
  ids: readonly string[],
  { drain = true, segmentBytes = 16_000_000, from = folder } = {},
): Promise<{ found: string[]; corrupt: number }> {
  const journal: Journal = await openJournal({ folder: from, segmentBytes });
  const pump: Pump = await startPump({
    journal,
    openSink: async () => ({
      async write(lines) {
        if (!drain) throw new Error('away');
        for (const one of lines) rows.add(entryId(entryOf(one)).split(' ')[0]!);
        return { refused: [] };
      },
      async close() {},
      destroy() {},
    }),
    backoffMs: [1, 5],
    gatherMs: 1,
    cursorEveryMs: 1,
  });
  for (const id of ids) {
    const result = await journal.append(line(id));
    if (result.kind !== 'journalled') throw new Error(result.kind);
    pump.offer(result.payload, result.start, result.end);
  }
  if (drain) await pump.settled(60_000);
  await pump.stop();
  const { corrupt } = pump.stats();
  await journal.close();
  return { found: [...journal.strange, ...(pump.found === null ? [] : [pump.found])], corrupt };
}

const cursorPath = () => join(folder, 'cursor.json');
const put = (cursor: object) => writeFile(cursorPath(), JSON.stringify(cursor));
const many = (name: string, n = 20) => Array.from({ length: n }, (_, i) => `${name}${i}`);

describe('restarts', () => {
  test('ten of them, idle ones in between, lose nothing and number no segment twice', async () => {
    const expected: string[] = [];
    let highest = 0;
    for (let i = 0; i < 10; i++) {
      const ids = i % 2 === 0 ? many(`r${i}-`, 5) : [];
      expected.push(...ids);
      const { found } = await live(ids);
      expect(found).toEqual([]);
      const seen = Number(JSON.parse(await readFile(cursorPath(), 'utf8')).segment);
      expect(seen).toBeGreaterThanOrEqual(highest);
      if (ids.length > 0) expect(seen).toBeGreaterThan(highest);
      highest = seen;
    }
    expect([...rows]).toEqual(expected);
  });

  test('a journal that an older Pawl left, without names of segments, is read whole', async () => {
    const records = ['old1', 'old2'].map((id) => encodeRecord(line(id)));
    await writeFile(segmentPath(folder, 1), Buffer.concat(records));
    await put({ segment: 1, offset: records[0]!.length });
    const { found, corrupt } = await live(['new']);
    expect([...rows]).toEqual(['old1', 'old2', 'new']);
    expect([found, corrupt]).toEqual([[], 0]);
    expect(await readdir(folder)).not.toContain('000000000001.journal');
  });
});

describe('a cursor that does not belong here', () => {
  const waiting = many('w');
  let named: { segment: number; id: string; bytes: number };
  beforeEach(async () => {
    await live(waiting, { drain: false });
    const [only] = (await findSegments(folder)).segments;
    named = { segment: only!.segment, id: only!.id!, bytes: only!.bytes };
  });

  test.each<[string, () => Promise<unknown>, RegExp | null]>([
    ['names a segment that never was', () => put({ ...named, segment: 4711, offset: 12 }), null],
    ['names a number beyond all', () => put({ ...named, segment: 9e15, offset: 12 }), /names no position/],
    ['names a negative offset', () => put({ ...named, offset: -1 }), /names no position/],
    ['has an offset past the end', () => put({ ...named, offset: named.bytes + 1 }), /which has only/],
    ['points into a record', () => put({ ...named, offset: NAME_BYTES + 7 }), /not where a record begins/],
    [
      'comes from another journal',
      () => put({ ...named, id: '00000000-0000-4000-8000-000000000000', offset: named.bytes }),
      /another one/,
    ],
    ['is empty', () => writeFile(cursorPath(), ''), /cannot be read/],
    ['is half a line', () => writeFile(cursorPath(), '{"segment":1,'), /cannot be read/],
    ['is the word null', () => writeFile(cursorPath(), 'null'), /names no position/],
    ['is a folder', () => mkdir(cursorPath()), /it is not a file/],
    ['is a link in a circle', () => symlink(cursorPath(), cursorPath()), /it is not a file/],
    ['is a pipe', async () => execFileSync('mkfifo', [cursorPath()]), /it is not a file/],
  ])('%s: nothing is lost, and what was found is said', async (_, prepare, said) => {
    await rm(cursorPath(), { force: true });
    await prepare();
    const { found } = await live(['after']);
    expect([...rows]).toEqual([...waiting, 'after']);
    if (said === null) expect(found).toEqual([]);
    else {
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(said);
      expect(found[0]).toMatch(/read again/);
    }
    rows.clear();
    await live(['last']);
    expect(rows).toContain('last');
  });

  test('one that belongs is used: what the database has is not sent again', async () => {
    const half = await readFile(segmentPath(folder, named.segment));
    const records = waiting.map((id) => encodeRecord(line(id)).length);
    const offset = NAME_BYTES + records.slice(0, 10).reduce((sum, n) => sum + n, 0);
    expect(half.length).toBeGreaterThan(offset);
    await put({ ...named, offset });
    expect((await live([])).found).toEqual([]);
    expect([...rows]).toEqual(waiting.slice(10));
  });
});

describe('segments that somebody changed', () => {
  const inThree = async () => {
    await live(many('a', 30), { drain: false, segmentBytes: 1000 });
    return (await findSegments(folder)).segments.map(({ segment }) => segment);
  };

  test('swapped ones are read, all of them', async () => {
    const [first, second] = await inThree();
    await writeCursor(folder, {
      segment: second!,
      offset: NAME_BYTES,
      id: (await findSegments(folder)).segments[1]!.id,
    });
    const aside = join(folder, 'aside');
    await rename(segmentPath(folder, first!), aside);
    await rename(segmentPath(folder, second!), segmentPath(folder, first!));
    await rename(aside, segmentPath(folder, second!));
    const { found } = await live(['new']);
    expect(rows).toEqual(new Set([...many('a', 30), 'new']));
    expect(found.join()).toMatch(/another one/);
  });

  test('segments of another journal, copied in below the cursor, are read before they are deleted', async () => {
    const other = await mkdtemp(join(tmpdir(), 'pawl-other-'));
    await live(many('foreign', 5), { drain: false, from: other });
    for (let i = 0; i < 4; i++) await live(many(`own${i}-`, 3)); // the cursor is at segment 4
    await copyFile(segmentPath(other, 1), segmentPath(folder, 1));
    await rm(other, { recursive: true });
    await live(['new']);
    for (const id of [...many('foreign', 5), 'new']) expect(rows).toContain(id);
  });

  test('a truncated one gives what is left of it', async () => {
    await live(many('a', 10), { drain: false });
    const { bytes, segment, id } = (await findSegments(folder)).segments[0]!;
    await writeCursor(folder, { segment, offset: bytes, id });
    const record = encodeRecord(line('a0')).length;
    await truncate(segmentPath(folder, segment), NAME_BYTES + 4 * record);
    const { found } = await live(['new']);
    expect([...rows]).toEqual([...many('a', 4), 'new']);
    expect(found.join()).toMatch(/which has only/);
  });

  test.each<[string, (path: string) => Promise<unknown>, RegExp]>([
    ['a folder', (path) => mkdir(path), /is a folder/],
    ['a link in a circle', (path) => symlink(path, path), /is a link/],
    ['a link to a file elsewhere', (path) => symlink('/etc/hostname', path), /is a link/],
    ['a pipe', async (path) => execFileSync('mkfifo', [path]), /is not a file/],
    [
      'a sparse file of 3 TB',
      async (path) => {
        await writeFile(path, '');
        await truncate(path, 3 * 1024 ** 4);
      },
      /larger than any segment/,
    ],
  ])('%s with the name of one is left alone, and recording goes on', async (_, make, said) => {
    await live(['before'], { drain: false });
    await make(segmentPath(folder, 2));
    const { found } = await live(['new']);
    expect([...rows]).toEqual(['before', 'new']);
    expect(found).toEqual([expect.stringMatching(said)]);
    await lstat(segmentPath(folder, 2)); // still there
  });

  test('a file of holes is passed over as damage, costs no room, and keeps nothing waiting', async () => {
    await writeFile(segmentPath(folder, 1), '');
    await truncate(segmentPath(folder, 1), 200 * 1024 ** 2);
    const journal = await openJournal({ folder });
    expect(journal.bytes()).toBeLessThan(1024 ** 2);
    await journal.close();
    const { corrupt } = await live(['new']);
    expect([...rows]).toEqual(['new']);
    expect(corrupt).toBe(1);
  });
});

describe('files', () => {
  test('the cursor is written beside a link, never through it', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'pawl-outside-'));
    const victim = join(outside, 'victim');
    await writeFile(victim, 'precious');
    await symlink(victim, `${cursorPath()}.new`);
    await writeCursor(folder, { segment: 1, offset: 2, id: null });
    expect(await readFile(victim, 'utf8')).toBe('precious');
    expect(JSON.parse(await readFile(cursorPath(), 'utf8'))).toEqual({ segment: 1, offset: 2, id: null });
    expect((await lstat(cursorPath())).isFile()).toBe(true);
    await rm(outside, { recursive: true });
  });

  test('only the owner can look into the journal, also one that others could look into before', async () => {
    const open = join(folder, 'journal');
    await mkdir(open, { mode: 0o755 });
    await (await openJournal({ folder: open })).close();
    expect((await stat(open)).mode & 0o777).toBe(0o700);
  });

  test('without a cursor there is nothing to say', async () => {
    expect(await resumeAt(folder, [])).toEqual({ from: null, problem: null });
  });
});
