import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSegment, openJournal, type SegmentWriter } from './journal.ts';
import { encodeRecord, HEADER, NAME_BYTES, scanRecords } from './journal-record.ts';
import { segmentPath } from './segments.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pawl-journal-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const appendLoop = fileURLToPath(new URL('./fixtures/append-loop.ts', import.meta.url));

async function readAll(): Promise<{ payloads: string[]; damage: number }> {
  const payloads: string[] = [];
  let damage = 0;
  for (const name of (await readdir(folder)).filter((n) => n.endsWith('.journal')).sort()) {
    const scan = scanRecords(await readFile(join(folder, name)), 0);
    const found = scan.records.map((record) => record.payload.toString());
    payloads.push(...found.filter((payload) => !payload.startsWith('{"segment":'))); // a segment's name is not an entry
    damage += scan.damage.length;
  }
  return { payloads, damage };
}

describe('records', () => {
  const payloads = ['{"a":1}', '', '{"text":"Grüße 😀"}', '{"b":[1,2,3]}'];
  const records = payloads.map(encodeRecord);
  const whole = Buffer.concat(records);
  const found = (bytes: Buffer) => scanRecords(bytes, 0).records.map((record) => record.payload.toString());
  /** Which record each byte belongs to. */
  const owner = records.flatMap((record, i) => Array.from(record, () => i));

  test('come back as they were written', () => {
    expect(found(whole)).toEqual(payloads);
    expect(scanRecords(whole, 0)).toMatchObject({ damage: [], consumed: whole.length });
  });

  test('cut off at any byte: every record that is still whole is found', () => {
    for (let at = 0; at < whole.length; at++) {
      const scan = scanRecords(whole.subarray(0, at), 0);
      const start = owner.indexOf(owner[at] as number);
      expect(scan.records.map((record) => record.payload.toString())).toEqual(payloads.slice(0, owner[at]));
      expect(scan.damage).toEqual(at === start ? [] : [{ start, end: at }]);
      expect(scan.consumed).toBe(at);
    }
  });

  test('any bit flipped in any byte: only that record is lost, and the place is named', () => {
    for (let at = 0; at < whole.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const flipped = Buffer.from(whole);
        flipped[at] = (flipped[at] as number) ^ (1 << bit);
        const hit = owner[at] as number;
        const scan = scanRecords(flipped, 0);
        expect(scan.records.map((record) => record.payload.toString())).toEqual(payloads.filter((_, i) => i !== hit));
        expect(scan.damage).toEqual([{ start: owner.indexOf(hit), end: owner.lastIndexOf(hit) + 1 }]);
      }
    }
  });

  test('a piece missing from the middle, or zeros in its place, costs only the records it touches', () => {
    const second = (records[0] as Buffer).length;
    const third = second + (records[1] as Buffer).length;
    expect(found(Buffer.concat([whole.subarray(0, second + 5), whole.subarray(third)]))).toEqual([
      payloads[0],
      payloads[2],
      payloads[3],
    ]);
    const zeros = Buffer.from(whole).fill(0, 4, second + 4);
    expect(found(zeros)).toEqual([payloads[2], payloads[3]]);
  });

  test('read block by block, a record that is not complete yet is waited for', () => {
    for (let at = 0; at < whole.length; at++) {
      const scan = scanRecords(whole.subarray(0, at), whole.length - at);
      expect(scan.damage).toEqual([]);
      expect(scan.consumed).toBe(owner.indexOf(owner[at] as number));
    }
  });

  test('damage is passed over block by block, and says when it may go on', () => {
    const damaged = Buffer.from(whole);
    damaged[0] = 0;
    const first = (records[0] as Buffer).length;
    const half = scanRecords(damaged.subarray(0, first), whole.length - first);
    expect(half).toMatchObject({
      records: [],
      damage: [{ start: 0, end: first - 3 }],
      consumed: first - 3,
      open: true,
    });
    const rest = scanRecords(damaged.subarray(half.consumed), 0);
    expect(rest.damage).toEqual([{ start: 0, end: 3 }]);
    expect(rest.records.map((record) => record.payload.toString())).toEqual(payloads.slice(1));
    expect(scanRecords(damaged, 0)).toMatchObject({ damage: [{ start: 0, end: first }], open: false });
  });

  test('a length that reaches beyond the file is damage, and is not waited for', () => {
    const lying = Buffer.from(whole);
    lying.writeUInt32LE(0xfffffff0, 4);
    const scan = scanRecords(lying, 1000);
    expect(scan.needs).toBe(0);
    expect(scan.records).toHaveLength(payloads.length - 1);
  });
});

describe('the journal', () => {
  test('acknowledges appends in order with their positions', async () => {
    const journal = await openJournal({ folder });
    const results = await Promise.all(['a', 'bb', 'ccc'].map((payload) => journal.append(payload)));
    expect(results).toEqual([
      {
        kind: 'journalled',
        start: { segment: 1, offset: NAME_BYTES },
        end: { segment: 1, offset: NAME_BYTES + HEADER + 1 },
        payload: Buffer.from('a'),
      },
      {
        kind: 'journalled',
        start: { segment: 1, offset: NAME_BYTES + HEADER + 1 },
        end: { segment: 1, offset: NAME_BYTES + 2 * HEADER + 3 },
        payload: Buffer.from('bb'),
      },
      {
        kind: 'journalled',
        start: { segment: 1, offset: NAME_BYTES + 2 * HEADER + 3 },
        end: { segment: 1, offset: NAME_BYTES + 3 * HEADER + 6 },
        payload: Buffer.from('ccc'),
      },
    ]);
    await journal.close();
    expect(await readAll()).toEqual({ payloads: ['a', 'bb', 'ccc'], damage: 0 });
  });

  test('appends that wait together share one write and one sync', async () => {
    let writes = 0;
    let syncs = 0;
    const journal = await openJournal({
      folder,
      createFile: (path) =>
        counting(
          path,
          () => writes++,
          () => syncs++,
        ),
    });
    await journal.append('first');
    await Promise.all(Array.from({ length: 100 }, (_, i) => journal.append(`record ${i}`)));
    await journal.close();
    expect([writes, syncs]).toEqual([2, 2]);
    expect((await readAll()).payloads).toHaveLength(101);
  });

  test('what is appended is in the file before the event loop turns, synced or not', async () => {
    const journal = await openJournal({ folder });
    const appended = journal.append('prompt');
    await null;
    await null;
    expect(readFileSync(segmentPath(folder, 1)).includes('prompt')).toBe(true);
    expect(journal.segments()[0]).toMatchObject({ bytes: 0, open: true });
    await appended;
    expect(journal.segments()[0]!.bytes).toBeGreaterThan(0);
    await journal.close();
  });

  test('begins a new segment when one is full, and never writes to one of an earlier start', async () => {
    const first = await openJournal({ folder, segmentBytes: 100 });
    for (let i = 0; i < 10; i++) await first.append('x'.repeat(30));
    await first.close();
    const sizes = first.segments();
    expect(sizes.length).toBeGreaterThan(2);
    const second = await openJournal({ folder });
    await second.append('later');
    await second.close();
    expect(second.segments().slice(0, -1)).toEqual(sizes);
    expect((await readAll()).payloads).toHaveLength(11);
  });

  test('refuses to grow beyond its limit and takes appends again once segments are removed', async () => {
    const journal = await openJournal({ folder, maxBytes: 1000 });
    const results: string[] = [];
    for (let i = 0; i < 20; i++) results.push((await journal.append('x'.repeat(100 - HEADER))).kind);
    expect(results.indexOf('full')).toBeGreaterThan(5);
    expect(results.at(-1)).toBe('full');
    expect(journal.bytes()).toBeLessThanOrEqual(1000);
    await journal.remove(journal.segments()[0]!.segment);
    expect((await journal.append('x')).kind).toBe('journalled');
    expect(journal.healthy()).toBe(true);
    await journal.close();
  });

  test('a disk that fails half way through a write leaves a readable segment and is used again when it works', async () => {
    let failing = false;
    const journal = await openJournal({
      folder,
      createFile: (path) => halfWriting(path, () => failing),
    });
    await journal.append('before');
    failing = true;
    expect(await journal.append('lost lost lost')).toMatchObject({ kind: 'failed', code: 'ENOSPC' });
    expect(journal.healthy()).toBe(false);
    expect(await readAll()).toEqual({ payloads: ['before'], damage: 0 });
    failing = false;
    expect((await journal.append('after')).kind).toBe('journalled');
    expect(journal.healthy()).toBe(true);
    await journal.close();
    expect(await readAll()).toEqual({ payloads: ['before', 'after'], damage: 0 });
  });

  test('after a sync that failed nothing of it is trusted, and a new segment is begun', async () => {
    let failing = false;
    const journal = await openJournal({
      folder,
      createFile: (path) =>
        counting(
          path,
          () => {},
          () => {
            if (failing) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
          },
        ),
    });
    await journal.append('before');
    failing = true;
    expect(await journal.append('doubtful')).toMatchObject({ kind: 'failed', code: 'EIO' });
    failing = false;
    expect(await journal.append('after')).toMatchObject({
      kind: 'journalled',
      start: { segment: 2, offset: NAME_BYTES },
    });
    await journal.close();
    expect((await readAll()).payloads).toEqual(['before', 'after']);
  });

  test('a file-size limit of the system is a typed failure with the partial record cut off', async () => {
    // bash counts in kilobytes; the limit falls inside the third record of 25 kB.
    const child = spawnSync(
      'bash',
      ['-c', 'ulimit -S -f 64 && exec "$0" --import tsx "$@"', process.execPath, appendLoop, folder, 'r', '25000'],
      { encoding: 'utf8' },
    );
    expect(child.stdout).toContain('fail EFBIG');
    const acked = [...child.stdout.matchAll(/^ack (.+)$/gm)].map((match) => match[1]);
    expect(acked).toContain('r-small');
    const { payloads, damage } = await readAll();
    expect(damage).toBe(0);
    const ids = payloads.map((payload) => JSON.parse(payload).id);
    expect(ids).toEqual(expect.arrayContaining(acked));
    expect((await stat(segmentPath(folder, 1))).size).toBeLessThan(64 * 1024);
  });

  test('a full file system is a typed failure, and recording goes on when there is space again', async (context) => {
    const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]);
    if (mount.status !== 0) return context.skip('mounting a small tmpfs needs rights that this user does not have');
    try {
      await writeFile(join(folder, 'other'), 'x'.repeat(30_000));
      const journal = await openJournal({ folder });
      const acked: string[] = [];
      for (let i = 0; ; i++) {
        const payload = `${i} ${'y'.repeat(5000)}`;
        const result = await journal.append(payload);
        if (result.kind !== 'journalled') {
          expect(result).toMatchObject({ kind: 'failed', code: 'ENOSPC' });
          break;
        }
        acked.push(payload);
      }
      expect(journal.healthy()).toBe(false);
      expect(await readAll()).toEqual({ payloads: acked, damage: 0 });
      await rm(join(folder, 'other'));
      expect((await journal.append('z'.repeat(5000))).kind).toBe('journalled');
      expect(journal.healthy()).toBe(true);
      await journal.close();
    } finally {
      spawnSync('umount', [folder]);
    }
  });

  test('killed with -9 twenty times while writing, it has every record that was acknowledged', async () => {
    const acked: string[] = [];
    for (let round = 0; round < 20; round++) {
      const child = spawn(process.execPath, ['--import', 'tsx', appendLoop, folder, `k${round}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let text = '';
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (chunk: Buffer) => {
          // From the first acknowledgement on, a different moment each round.
          if (text === '') setTimeout(() => child.kill('SIGKILL'), (round * 7) % 50);
          text += chunk.toString();
        });
        child.on('close', () => resolve());
      });
      acked.push(...[...text.matchAll(/^ack (.+)\n/gm)].map((match) => match[1] as string));
    }
    const ids = new Set((await readAll()).payloads.map((payload) => JSON.parse(payload).id));
    expect(acked.length).toBeGreaterThanOrEqual(20);
    expect(acked.filter((id) => !ids.has(id))).toEqual([]);
  }, 600_000); // twenty process starts, on a machine that may be busy
});

/** A file that tells of each write and sync. */
function counting(path: string, onWrite: () => void, onSync: () => void): SegmentWriter {
  const file = createSegment(path);
  return {
    ...file,
    write(...args) {
      onWrite();
      return file.write(...args);
    },
    async datasync() {
      onSync();
      await file.datasync();
    },
  };
}

/** A file whose writes, while failing, put down half of the bytes and then report a full disk. */
function halfWriting(path: string, failing: () => boolean): SegmentWriter {
  const file = createSegment(path);
  return {
    ...file,
    write(bytes, from, position) {
      if (!failing()) return file.write(bytes, from, position);
      file.write(bytes.subarray(0, from + ((bytes.length - from) >> 1)), from, position);
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    },
  };
}
