/**
 * Makes a dataset of a window: every conversation of the agent goes through the gates, those that pass all of them become
 * rows, and answers of which one is better than another become pairs (pairs.ts). Rows wait in a draft on disk while the rest of the window is read, so memory holds a line per row and not the row.
 * The result depends on what was recorded, the settings and the seed, and on nothing else: rows are ordered by id. Run
 * again it gives the same dataset; killed anywhere it leaves nothing anybody reads.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import type { PiiSettings } from '../collect/redact/settings.ts';
import { type Origin, origins } from '../collect/trajectory.ts';
import type { Score } from '../score/score.ts';
import { readStandings } from '../store/consents.ts';
import { type DatasetRow, refuseErased, saveDataset } from '../store/datasets.ts';
import { raiseHoldout, readHoldout } from '../store/holdouts.ts';
import type { Store } from '../store/postgres.ts';
import { readReferences } from '../store/references.ts';
import { readScoresOf } from '../store/scores.ts';
import { refreshStatistics } from '../store/statistics.ts';
import { readWalls } from '../store/walls.ts';
import { batchesOf, type Placed, placedKey, readSizes, readTurnsOf, windowPages } from '../store/window.ts';
import { anonymiseRow, openAnonymiser } from './anonymise.ts';
import { findShifts } from './check.ts';
import { agentName, type Dataset, type DatasetDraft, datasetId, datasetKey } from './dataset.ts';
import { type Draft, keepDraft, openDraft, pairText, removeOlderFile } from './files.ts';
import { countFunnel, type FunnelCount } from './funnel.ts';
import {
  type Gate,
  gateNames,
  holdsConfidential,
  type PassedWhole,
  type Seen,
  seenGates,
  setGates,
  sizedGates,
  usersOf,
  wholeGates,
} from './gates.ts';
import { patternOf, questionOf } from './k-anonymity.ts';
import { signatureShelf } from './minhash.ts';
import { wordingOf } from './near-duplicates.ts';
import { NothingKept } from './nothing-kept.ts';
import { searchPairs } from './pairs.ts';
import { fingerprint, type Made, makeRow } from './row.ts';
import { type SettingsInput, settings, settingsKept } from './settings.ts';

export type CurateWindow = {
  readonly agent: string;
  /** The reward spec whose scores count. Score the window first (score/run.ts). */
  readonly spec: { readonly version: string };
  readonly since: Date;
  readonly until: Date;
  readonly settings?: SettingsInput;
  /** What is personal for the agent (collect/redact/settings.ts); without it what was masked when it was recorded. */
  readonly pii?: PiiSettings;
  readonly seed?: number;
  readonly now: Date;
  /** Who makes it; stands in the audit log. */
  readonly by?: string; // pawl
  /** Throws NothingKept instead of making a dataset without rows. */
  readonly refuseEmpty?: boolean;
  /** Told how many conversations were looked at. */
  readonly onProgress?: (conversations: number) => void;
};

type Waiting = PassedWhole & {
  readonly internal: boolean;
  readonly at: { readonly start: number; readonly length: number };
};

export const curateWindow = (store: Store, artifacts: Artifacts, options: CurateWindow): Promise<Dataset> =>
  select(store, artifacts.home, { ...options, keep: true }, async (selected, lineage, draft) => {
    // Where the same selection was made before and its file has been lost since, here it is again, byte for byte.
    const artifact = await keepDraft(artifacts, selected, draft);
    const saved = await saveDataset(store, { ...selected, artifact }, lineage, datasetId, async (db, id, isNew) => {
      await refuseErased(db, id, options.now);
      if (isNew) await auditDataset(db, id, selected, options);
    }).catch(async (error: unknown) => {
      // It may hold what somebody has erased meanwhile: what no dataset refers to is not left lying.
      if (!(await readReferences(store)).has(artifact)) await artifacts.remove(artifact);
      throw error;
    });
    await removeOlderFile(artifacts, saved.id);
    return saved;
  });

/** Who made it, and by which rules: what a privacy officer asks first. */
async function auditDataset(db: Store['db'], id: string, made: DatasetDraft, { by = 'pawl', now }: CurateWindow) {
  const { agent, rows, pairs, hash, since, until, spec } = made;
  const { on, kAnonymity, minScore } = made.settings;
  const window = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
  const details = { rows, pairs: pairs.rows, hash, ...window, spec, on, kAnonymity, minScore };
  await audit(db, { agent, actor: by, event: 'dataset-created', subject: id, details, at: now.getTime() });
}

/** What the dataset would be; nothing is kept. */
export const previewWindow = (store: Store, artifacts: Artifacts, options: CurateWindow): Promise<DatasetDraft> =>
  select(store, artifacts.home, { ...options, keep: false }, async (selected) => selected);

async function select<T>(
  store: Store,
  home: string,
  options: CurateWindow & { readonly keep: boolean },
  use: (selected: DatasetDraft, lineage: readonly DatasetRow[], draft: Draft) => Promise<T>,
): Promise<T> {
  const { spec, since, until, seed = 0, now } = options;
  const agent = agentName.parse(options.agent);
  const given = settings.parse(options.settings ?? {});
  const heldOut = options.keep
    ? await raiseHoldout(store, agent, given.holdOut)
    : Math.max(given.holdOut, await readHoldout(store, agent));
  const set = { ...given, holdOut: heldOut };
  const gates = wholeGates(set);
  // Of what was simulated nobody is a person.
  const clean = await openAnonymiser(set.on === 'simulation' ? undefined : options.pii);
  const anonymise = (made: Made) => anonymiseRow(made, clean);
  const funnel = countFunnel(gateNames(set));
  const waiting: Waiting[] = [];
  const [shelf, once] = [signatureShelf(), onceEach()];
  let looked = 0;
  const passes = <T>(gates: readonly Gate<T>[], candidate: T): boolean =>
    gates.every(({ name, reason }) => {
      const why = reason(candidate, set);
      funnel.add(name, why);
      return why === null;
    });

  await refreshStatistics(store);
  const held = await findShifts(store, { agent, origin: set.on, spec: spec.version, since, until });
  const spool = await openDraft(home);
  const draft = await openDraft(home).catch(async (error) => {
    await spool.drop();
    throw error;
  });
  const search = searchPairs(store, { ...{ agent, spec: spec.version, settings: set, spool }, clean });
  try {
    // Every origin is looked at, so that the funnel also says what the guard kept out.
    for (const origin of origins as readonly Origin[])
      for await (const page of windowPages(store, { agent, origin, since, until })) {
        const seen = await lookAt(store, page, spec.version, held);
        looked += page.length;
        options.onProgress?.(looked);
        if (origin === set.on) await search.look(page, seen);
        const good = page.filter((one) => passes(seenGates, seen.get(placedKey(one))!));
        const sizes = await readSizes(store, good);
        const readable = good.filter((one) => passes(sizedGates, { bytes: sizes.get(placedKey(one)) ?? null }));
        for (const batch of batchesOf(readable, sizes)) {
          const turns = await readTurnsOf(store, batch);
          for (const one of batch) {
            const candidate = seen.get(placedKey(one))!;
            const score = candidate.score as Score & { readonly total: number };
            const own = turns.get(placedKey(one)) ?? [];
            const made = await anonymise(makeRow(own, score));
            if (!passes(gates, { ...candidate, turns: own, made, isClean: clean !== null }) || made.kind === 'refused')
              continue;
            waiting.push({
              trajectory: made.row.trajectory,
              day: once(made.row.day),
              users: usersOf(own).map(once),
              keys: candidate.walls.keys.map(once),
              sources: candidate.walls.sources.map(once),
              tenants: candidate.walls.tenants.flatMap((tenant) => (tenant === null ? [] : once(tenant))),
              score: score.total,
              fingerprint: fingerprint(made.row),
              question: patternOf(questionOf(made.row.threads[0]!.messages)),
              wording: shelf(wordingOf(made.row)),
              taskType: made.row.taskType === null ? null : once(made.row.taskType),
              internal: holdsConfidential({ made }, set.confidential),
              at: await spool.add(JSON.stringify(made.row)),
            });
          }
        }
      }
    const rows = await choose(waiting, funnel, spool, draft, (gate, all) => gate.select(all, set, seed));
    const compared = await search.choose(seed, waiting);
    for (const pair of compared.pairs) await draft.add(pairText(pair));
    if (rows.length + compared.pairs.length === 0 && options.refuseEmpty) throw new NothingKept(funnel.steps());
    const sources = countBy(compared.pairs.map(({ source }) => source));
    const pairs = { rows: compared.pairs.length, sources, funnel: compared.funnel };
    const about = {
      spec: spec.version,
      settings: settingsKept(set),
      seed,
      funnel: funnel.steps(),
      pairs,
      hash: draft.hash(),
    };
    const inRows = new Set(rows.map(({ day, trajectory }) => `${day} ${trajectory}`));
    const onlyInPairs = compared.origins.filter(({ day, trajectory }) => !inRows.has(`${day} ${trajectory}`));
    const selected: DatasetDraft = {
      ...about,
      agent,
      createdAt: now.getTime(),
      since: since.getTime(),
      until: until.getTime(),
      taskTypes: countBy(rows.map(({ taskType }) => taskType ?? 'unknown')),
      rows: rows.length,
      internal: compared.internal || rows.some((row) => row.internal),
      key: datasetKey(about),
      artifact: null,
    };
    return await use(selected, [...rows, ...onlyInPairs], draft);
  } finally {
    await spool.drop();
    await draft.drop();
  }
}

/** What the first gates need of a page: scores, today's consent, and what it came with. */
async function lookAt(
  store: Store,
  page: readonly Placed[],
  spec: string,
  held: Awaited<ReturnType<typeof findShifts>>,
): Promise<Map<string, Seen>> {
  const scores = await readScoresOf(store, page, spec);
  const trajectories = page.map(({ trajectory }) => trajectory);
  const standings = await readStandings(store, trajectories);
  const walls = await readWalls(store, trajectories);
  return new Map(
    page.map((one, i) => [
      placedKey(one),
      {
        trajectory: one.trajectory,
        standing: standings[i]!,
        walls: walls[i]!,
        shifted: held.some(
          ({ key, taskType, releasedAt }) =>
            walls[i]!.keys.includes(key) &&
            walls[i]!.taskTypes.includes(taskType) &&
            (releasedAt === null || one.trajectory.startedAt > releasedAt),
        ),
        score: scores.get(placedKey(one)) ?? null,
      },
    ]),
  );
}

/** The same text again is the same string: each row of a database brings its own copies. */
function onceEach(): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    const first = known.get(text) ?? text;
    known.set(first, first);
    return first;
  };
}

/** Rows read back from the spool at a time. */
const readAtOnce = 32;

/** The gates that look at all together, then the chosen rows into the draft, by id. */
async function choose(
  waiting: readonly Waiting[],
  funnel: FunnelCount,
  spool: Draft,
  draft: Draft,
  select: (
    gate: (typeof setGates)[number],
    all: readonly Waiting[],
  ) => { readonly kept: readonly Waiting[]; readonly left: readonly { readonly reason: string }[] },
): Promise<Waiting[]> {
  let kept = waiting;
  for (const gate of setGates) {
    const verdict = select(gate, kept);
    for (const { reason } of verdict.left) funnel.add(gate.name, reason);
    for (const _ of verdict.kept) funnel.add(gate.name, null);
    kept = verdict.kept;
  }
  const rows = [...kept].sort((a, b) => (`${a.trajectory} ${a.day}` < `${b.trajectory} ${b.day}` ? -1 : 1));
  for (let from = 0; from < rows.length; from += readAtOnce) {
    const lines = await Promise.all(rows.slice(from, from + readAtOnce).map(({ at }) => spool.read(at)));
    for (const line of lines) await draft.add(line);
  }
  return rows;
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
