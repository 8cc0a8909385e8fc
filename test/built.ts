/**
 * As vitest's global set-up: builds the clone once for a run of all tests, whose many processes then start in half the time and are
 * what a package holds. A run of named files starts from source.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isWholeRun } from '../src/store/test-server.ts';

export default function setUp(): void {
  if (!isWholeRun()) return;
  execFileSync(process.execPath, [fileURLToPath(new URL('../scripts/build.js', import.meta.url)), '--quick']);
  process.env.PAWL_BUILT = '1'; // the workers inherit it
}
