/**
 * Names of models that are known to exist: those in the settings, and those that an upstream lists. Only such a name may stand
 * on /metrics; what else a caller writes into `model` may be personal, or different each time. An upstream is asked for its
 * list in the background, when a name is not known and it was not asked for a minute.
 */
import type { Config } from '../config.ts';
import { modelsOf } from './models.ts';
import type { Upstreams } from './upstreams.ts';

export type KnownModels = { has(upstream: string, model: string): boolean };

const askAgainMs = 60_000;
const maxNames = 10_000;

export function createKnownModels(settings: Config['upstreams'], upstreams: Upstreams): KnownModels {
  const named = new Map(Object.entries(settings).map(([upstream, { models }]) => [upstream, new Set(models)]));
  const askedAt = new Map<string, number>();

  async function learn(upstream: string, names: Set<string>): Promise<void> {
    for (const { id } of await modelsOf(upstreams, upstream)) if (names.size < maxNames) names.add(id);
  }

  return {
    has(upstream, model) {
      const names = named.get(upstream);
      if (names === undefined || names.has(model)) return names !== undefined;
      const now = Date.now();
      if (now - (askedAt.get(upstream) ?? 0) > askAgainMs) {
        askedAt.set(upstream, now);
        learn(upstream, names).catch(() => {}); // an upstream without a list has no names
      }
      return false;
    },
  };
}
