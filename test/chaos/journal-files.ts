/**
 * The journal's files as somebody sees them who damages them: segments, the records in each, the names those carry.
 * Damage is done while no gateway runs and while records wait in the journal that the database does not have.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdLiving } from './hold.ts';
import type { Stage } from './stage.ts';

export type RecordAt = { readonly start: number; readonly end: number; readonly names: readonly string[] };
export type Segment = { readonly path: string; readonly size: number; readonly records: readonly RecordAt[] };

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;

const magic = Buffer.from([0xf7, 0x50, 0x57, 0x4c]);
const header = 12;

/** The whole records in undamaged bytes: magic, length of the payload (4, LE), checksum (4), payload. */
function recordsIn(bytes: Buffer): RecordAt[] {
  const records: RecordAt[] = [];
  for (let start = 0; bytes.length - start >= header && bytes.compare(magic, 0, 4, start, start + 4) === 0; ) {
    const end = start + header + bytes.readUInt32LE(start + 4);
    if (end > bytes.length) break;
    records.push({ start, end, names: bytes.toString('latin1', start + header, end).match(uuid) ?? [] });
    start = end;
  }
  return records;
}

/** Oldest first; empty files are left out. */
export function segmentsIn(folder: string): Segment[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.journal'))
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const bytes = readFileSync(path);
      return { path, size: bytes.length, records: recordsIn(bytes) };
    })
    .filter(({ size }) => size > 0);
}

/** Kills the gateway with records waiting in its journal, lets `damage` at the files, and starts it again. */
export async function withRecordsWaiting<T>(
  stage: Stage,
  damage: () => T,
  /** Runs while the database is held and the gateway alive. */
  before: () => Promise<void> = async () => {},
): Promise<T> {
  const { gateway, database } = stage;
  const held = await holdLiving(database);
  try {
    await sleep(500);
    await before();
    await gateway.kill();
    return damage();
  } finally {
    held.release();
    gateway.begin();
  }
}
