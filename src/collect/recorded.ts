/** All that was recorded so far, in the database: who reads a window of traffic waits for it. */
import { StoreError } from '../errors.ts';
import type { Recorder } from './recorder.ts';

/** A database that takes nothing for minutes ends the wait. */
export async function recordedBy(recorder: Recorder): Promise<void> {
  if (!(await recorder.drain(300_000)))
    throw new StoreError('The database has not taken the recorded traffic within 5 minutes; see /healthz for why.', {
      retryable: true,
    });
}
