/** Whether the adapter of a release is loaded where it is served, asked of that server itself. */
import type { Config } from '../config.ts';
import type { Release } from './release.ts';
import { vllmServer } from './vllm.ts';

export type AdapterState = {
  readonly state: 'loaded' | 'not loaded' | 'unknown';
  /** In words, with the way out where there is one. */
  readonly sentence: string;
};

/** null: the release is no adapter for a server. */
export async function adapterState(upstreams: Config['upstreams'], release: Release): Promise<AdapterState | null> {
  const { upstream, model, checkpoint } = release;
  const settings = upstreams[upstream];
  if (checkpoint === null || settings?.adapters === undefined) return null;
  try {
    const listed = await vllmServer(upstream, settings).models();
    return listed.has(model)
      ? { state: 'loaded', sentence: `loaded at upstream ${upstream}` }
      : {
          state: 'not loaded',
          sentence: `not loaded at upstream ${upstream}; a gateway loads it while it is in play or evaluated`,
        };
  } catch (error) {
    return { state: 'unknown', sentence: `not known: ${error instanceof Error ? error.message : String(error)}` };
  }
}
