/**
 * The journal's files as somebody sees them who damages them: segments, the records in each, the names those carry.
 * Damage is done while no gateway runs and while records wait in the journal that the database does not have.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { scanRecords } from '../../src/collect/journal-record.ts';
import type { Stage } from './stage.ts';

export type RecordAt = { readonly start: number; readonly end: number; readonly names: readonly string[] };
export type Segment = { readonly path: string; readonly size: number; readonly records: readonly RecordAt[] };

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;

/** Oldest first; empty files are left out. */
export function segmentsIn(folder: string): Segment[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.journal'))
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const bytes = readFileSync(path);
      const records = scanRecords(bytes, true).records.map(({ start, end, payload }) => ({
        start,
        end,
        names: payload.toString('latin1').match(uuid) ?? [],
      }));
      return { path, size: bytes.length, records };
    })
    .filter(({ size }) => size > 0);
}

/** Kills the gateway with records waiting in its journal, lets `damage` at the files, and starts it again. */
export async function withRecordsWaiting<T>(stage: Stage, damage: () => T): Promise<T> {
  const { gateway, database } = stage;
  const held = database.hold();
  try {
    await sleep(500);
    await gateway.kill();
    return damage();
  } finally {
    held.release();
    gateway.begin();
  }
}
