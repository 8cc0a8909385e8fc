/** Asks, judges and keeps whether a release fits where it is to serve. */
import { audit } from '../audit.ts';
import type { Origin } from '../collect/trajectory.ts';
import type { Config } from '../config.ts';
import { engineUpstream } from '../engine/open.ts';
import { saveCompatibility } from '../store/compatibility.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease } from '../store/releases.ts';
import { readUsed } from '../store/used.ts';
import {
  besideServing,
  type CheckName,
  type Compatibility,
  type CompatibilitySettings,
  compatibilitySettings,
  judgeCompatibility,
  type Needs,
  needsInWords,
  needsOf,
} from './compatibility.ts';
import type { Door } from './door.ts';
import { probeRelease } from './probe.ts';

/** What of an agent's definition says what is needed. */
export type NeedingAgent = {
  readonly name: string;
  readonly evaluate: { readonly compatibility?: CompatibilitySettings | undefined };
  readonly curate: { readonly on: Origin };
};
type At = { readonly upstream: string };

/** The server that answers a release, as a record has it: without what may be a password. */
export function serverOf(upstreams: Config['upstreams'], { upstream }: At): string {
  const baseUrl = upstreams[upstream]?.baseUrl;
  if (upstream === engineUpstream || baseUrl === undefined) return upstream;
  const { origin, pathname } = new URL(baseUrl);
  return `${upstream} ${origin}${pathname}`;
}

/** What a release of this agent has to be able to do now; null where its traffic has nothing that can be asked for. */
export async function neededOf(
  store: Store,
  upstreams: Config['upstreams'],
  { name, evaluate, curate }: NeedingAgent,
  { upstream }: At,
  now: number,
): Promise<Needs | null> {
  const used = await readUsed(store, { agent: name, origin: curate.on, now });
  // Only chat completions can be asked for; an agent that speaks another format alone says itself what is to be checked.
  if (evaluate.compatibility === undefined && used.calls > 0 && used.chats === 0) return null;
  const baseUrl = upstream === engineUpstream ? undefined : upstreams[upstream]?.baseUrl;
  // Where vLLM, SGLang and llama.cpp have it; a server without one is merely not asked again.
  const metrics = baseUrl === undefined ? null : `${new URL(baseUrl).origin}/metrics`;
  return needsOf(evaluate.compatibility ?? compatibilitySettings.parse({}), used, { metrics });
}

export type CheckCompatibility = {
  readonly agent: string;
  readonly release: string;
  /** The server that is asked (`serverOf`). */
  readonly server: string;
  readonly needs: Needs;
  /** Name of the release that serves, which is the measure of what only the traffic says is needed. */
  readonly serving?: string | null | undefined;
  readonly door: Door;
  /** Who asks; stands in the audit log. */
  readonly by: string;
  readonly signal?: AbortSignal | undefined;
  readonly onCheck?: ((name: CheckName) => void) | undefined;
};

export async function checkCompatibility(store: Store, of: CheckCompatibility): Promise<Compatibility> {
  const { agent, release, server, needs, serving = null } = of;
  let judged = judgeCompatibility(await probeRelease(of, needs), needs);
  const isDerived = judged.checks.some(({ name, verdict }) => verdict === 'fail' && needs.derived.includes(name));
  if (isDerived && serving !== null && serving !== release)
    judged = besideServing(
      judged,
      needs,
      judgeCompatibility(await probeRelease({ ...of, release: serving }, needs), needs),
    );
  const metrics = needs.metrics === null ? null : new URL(needs.metrics).origin + new URL(needs.metrics).pathname;
  const found = { agent, release, ...judged, needs: { ...needs, metrics }, server, at: Date.now() };
  const subject = (await readRelease(store, { agent, name: release }))?.id ?? release;
  await store.db.transaction().execute(async (db) => {
    await saveCompatibility({ db }, found);
    await audit(db, {
      ...{ agent, actor: of.by, event: 'compatibility-checked', subject, at: found.at },
      details: {
        ...{ verdict: found.verdict, server, asked: needsInWords(needs) },
        checks: found.checks.map(({ name, verdict, reason }) =>
          verdict === 'pass' ? { name, verdict } : { name, verdict, reason },
        ),
      },
    });
  });
  return found;
}
