/**
 * Makes a dataset of a window: every conversation of the agent goes through the gates, those that pass all of them become
 * rows, and answers of which one is better than another become pairs (pairs.ts). Rows wait in a draft on disk while the rest of the window is read, so memory holds a line per row and not the row.
 * The result depends on what was recorded, the settings and the seed, and on nothing else: rows are ordered by id. Run
 * again it gives the same dataset; killed anywhere it leaves nothing anybody reads.
 */
import { existsSync } from 'node:fs';
import { type Origin, origins } from '../collect/trajectory.ts';
import type { Score } from '../score/score.ts';
import { readStandings } from '../store/consents.ts';
import { type DatasetRow, saveDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { readScoresOf } from '../store/scores.ts';
import { batchesOf, type Placed, placedKey, readSizes, readTurnsOf, windowPages } from '../store/window.ts';
import {
  agentName,
  type Dataset,
  type DatasetDraft,
  datasetId,
  datasetKey,
  type SettingsInput,
  settings,
} from './dataset.ts';
import { type Draft, datasetFile, openDraft, pairText } from './files.ts';
import { countFunnel, type FunnelCount } from './funnel.ts';
import { type Gate, gateNames, type Passed, type Seen, seenGates, setGates, sizedGates, wholeGates } from './gates.ts';
import { NothingKept } from './nothing-kept.ts';
import { searchPairs } from './pairs.ts';
import { fingerprint, makeRow } from './row.ts';

export type CurateWindow = {
  readonly agent: string;
  /** The reward spec whose scores count. Score the window first (score/run.ts). */
  readonly spec: { readonly version: string };
  readonly since: Date;
  readonly until: Date;
  readonly settings?: SettingsInput;
  readonly seed?: number;
  readonly now: Date;
  /** Throws NothingKept instead of making a dataset without rows. */
  readonly refuseEmpty?: boolean;
  /** Told how many conversations were looked at. */
  readonly onProgress?: (conversations: number) => void;
};

type Waiting = Passed & {
  readonly taskType: string | null;
  readonly at: { readonly start: number; readonly length: number };
};

export const curateWindow = (store: Store, home: string, options: CurateWindow): Promise<Dataset> =>
  select(store, home, options, async (selected, lineage, draft) => {
    const saved = await saveDataset(store, selected, lineage, (id) => draft.publish(datasetFile(home, id)), datasetId);
    // The same selection was made before and its file has been lost since: here it is again, byte for byte.
    if (!existsSync(datasetFile(home, saved.id))) await draft.publish(datasetFile(home, saved.id));
    return saved;
  });

/** What the dataset would be; nothing is kept. */
export const previewWindow = (store: Store, home: string, options: CurateWindow): Promise<DatasetDraft> =>
  select(store, home, options, async (selected) => selected);

async function select<T>(
  store: Store,
  home: string,
  options: CurateWindow,
  use: (selected: DatasetDraft, lineage: readonly DatasetRow[], draft: Draft) => Promise<T>,
): Promise<T> {
  const { spec, since, until, seed = 0, now } = options;
  const agent = agentName.parse(options.agent);
  const set = settings.parse(options.settings ?? {});
  const funnel = countFunnel(gateNames);
  const waiting: Waiting[] = [];
  let looked = 0;
  const passes = <T>(gates: readonly Gate<T>[], candidate: T): boolean =>
    gates.every(({ name, reason }) => {
      const why = reason(candidate, set);
      funnel.add(name, why);
      return why === null;
    });

  const spool = await openDraft(home);
  const draft = await openDraft(home).catch(async (error) => {
    await spool.drop();
    throw error;
  });
  const search = searchPairs(store, { agent, spec: spec.version, settings: set, spool });
  try {
    // Every origin is looked at, so that the funnel also says what the guard kept out.
    for (const origin of origins as readonly Origin[])
      for await (const page of windowPages(store, { agent, origin, since, until })) {
        const seen = await lookAt(store, page, spec.version);
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
            const made = makeRow(own, score);
            if (!passes(wholeGates, { ...candidate, turns: own, made }) || made.kind === 'refused') continue;
            waiting.push({
              trajectory: made.row.trajectory,
              day: made.row.day,
              users: [...new Set(own.flatMap(({ user }) => user ?? []))],
              score: score.total,
              fingerprint: fingerprint(made.row),
              taskType: made.row.taskType,
              at: await spool.add(JSON.stringify(made.row)),
            });
          }
        }
      }
    const rows = await choose(waiting, funnel, spool, draft, (gate, all) => gate.select(all, set, seed));
    const compared = await search.choose(seed);
    for (const pair of compared.pairs) await draft.add(pairText(pair));
    if (rows.length + compared.pairs.length === 0 && options.refuseEmpty) throw new NothingKept(funnel.steps());
    const sources = countBy(compared.pairs.map(({ source }) => source));
    const pairs = { rows: compared.pairs.length, sources, funnel: compared.funnel };
    const about = { spec: spec.version, settings: set, seed, funnel: funnel.steps(), pairs, hash: draft.hash() };
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
      key: datasetKey(about),
    };
    return await use(selected, [...rows, ...onlyInPairs], draft);
  } finally {
    await spool.drop();
    await draft.drop();
  }
}

/** What the first gates need of a page: scores and today's consent. */
async function lookAt(store: Store, page: readonly Placed[], spec: string): Promise<Map<string, Seen>> {
  const scores = await readScoresOf(store, page, spec);
  const standings = await readStandings(
    store,
    page.map(({ trajectory }) => trajectory),
  );
  return new Map(
    page.map((one, i) => [
      placedKey(one),
      {
        trajectory: one.trajectory,
        standing: standings[i]!,
        score: scores.get(placedKey(one)) ?? null,
      },
    ]),
  );
}

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
  for (const one of rows) await draft.add(await spool.read(one.at));
  return rows;
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
