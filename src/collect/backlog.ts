/** What a journal folder holds that the database does not have, seen from outside: read as the next start would read it. */
import { resumeAt } from './cursor.ts';
import { NAME_BYTES, scanRecords } from './journal-record.ts';
import { countRejected } from './rejected.ts';
import { findSegments, openSegment } from './segments.ts';

export type Backlog = {
  readonly bytes: number;
  /** Damaged stretches among them, as far as was looked. */
  readonly damaged: number;
  readonly rejected: { readonly entries: number; readonly files: readonly string[] };
  /** What is odd about the folder or its cursor, and what that means, a sentence each. */
  readonly odd: readonly string[];
};

/** No more of the waiting bytes than this is looked at. */
const SCAN_LIMIT = 256 * 1024 ** 2;

export async function readBacklog(folder: string): Promise<Backlog> {
  const { segments, strange } = await findSegments(folder);
  const { from, problem } = await resumeAt(folder, segments);
  let bytes = 0;
  let damaged = 0;
  for (const { segment, bytes: size, id } of segments) {
    const start = segment === from?.segment ? from.offset : id === null ? 0 : Math.min(NAME_BYTES, size);
    bytes += size - start;
    if (bytes > SCAN_LIMIT) continue;
    const file = await openSegment(folder, segment);
    try {
      const buffer = Buffer.alloc(size - start);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
      damaged += scanRecords(buffer.subarray(0, bytesRead), 0).damage.length;
    } finally {
      await file.close();
    }
  }
  return {
    bytes,
    damaged,
    rejected: await countRejected(folder),
    odd: problem === null ? strange : [problem, ...strange],
  };
}
