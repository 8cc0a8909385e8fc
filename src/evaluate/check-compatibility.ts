/** Asks, judges and keeps whether a release fits where it is to serve. */
import { saveCompatibility } from '../store/compatibility.ts';
import type { Store } from '../store/postgres.ts';
import { type Compatibility, type CompatibilitySettings, judgeCompatibility } from './compatibility.ts';
import type { Door } from './door.ts';
import { probeRelease } from './probe.ts';

export async function checkCompatibility(
  store: Store,
  of: {
    readonly agent: string;
    readonly release: string;
    readonly settings: CompatibilitySettings;
    readonly door: Door;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Compatibility> {
  const { agent, release, settings } = of;
  const judged = judgeCompatibility(await probeRelease(of, settings), settings);
  const found = { agent, release, ...judged, at: Date.now() };
  await saveCompatibility(store, found);
  return found;
}
