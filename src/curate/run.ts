/**
 * Makes a dataset of a window: every conversation of the agent goes through the gates, those that pass all of them become
 * rows, and answers of which one is better than another become pairs (pairs.ts). Rows wait in a draft on disk while the rest of the window is read, and memory holds a few numbers of each (candidates.ts).
 * The result depends on what was recorded, the settings and the seed, and on nothing else: rows are ordered by id. Run
 * again it gives the same dataset; killed anywhere it leaves nothing anybody reads.
 */
import { join } from 'node:path';
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
import { createCandidates, type Waiting } from './candidates.ts';
import { findShifts } from './check.ts';
import { agentName, type Dataset, type DatasetDraft, datasetId, datasetKey } from './dataset.ts';
import { type Draft, keepDraft, openDraft, pairText, removeOlderFile } from './files.ts';
import { countFunnel, type FunnelCount } from './funnel.ts';
import {
  type Gate,
  gateNames,
  holdsConfidential,
  passing,
  type Seen,
  seenGates,
  setGates,
  sizedGates,
  usersOf,
  wholeGates,
} from './gates.ts';
import { createCrowd, patternOf, questionOf } from './k-anonymity.ts';
import { createNames } from './names.ts';
import { createWordings, wordingOf } from './near-duplicates.ts';
import { NothingKept } from './nothing-kept.ts';
import { readOwnNames } from './own-names.ts';
import { type Found, searchPairs } from './pairs.ts';
import { fingerprint, type Made, makeRow } from './row.ts';
import { type Settings, type SettingsInput, settings, settingsKept } from './settings.ts';
import { openShelf, type Shelf } from './shelf.ts';

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

/** What is kept of a row beside its line in the spool. */
type Note = DatasetRow & {
  readonly taskType: string | null;
  readonly internal: boolean;
  readonly at: { readonly start: number; readonly length: number };
};

export const curateWindow = (store: Store, artifacts: Artifacts, options: CurateWindow): Promise<Dataset> =>
  select(store, artifacts.home, { ...options, keep: true }, async (selected, lineage, draft) => {
    // Where the same selection was made before and its file has been lost since, here it is again, byte for byte.
    const artifact = await keepDraft(artifacts, selected, draft);
    const saved = await saveDataset(store, { ...selected, artifact }, lineage(), datasetId, async (db, id, isNew) => {
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
  use: (selected: DatasetDraft, lineage: () => AsyncGenerator<DatasetRow>, draft: Draft) => Promise<T>,
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
  const pii = set.on === 'simulation' ? undefined : options.pii;
  const clean = await openAnonymiser(pii, (namesIn) =>
    readOwnNames(store, { agent, on: set.on, since, until, share: pii!.ownFrom }, namesIn),
  );
  const anonymise = (made: Made) => anonymiseRow(made, clean);
  const funnel = countFunnel(gateNames(set));
  let looked = 0;
  const passes = <T>(gates: readonly Gate<T>[], candidate: T): boolean =>
    gates.every(({ name, reason }) => {
      const why = reason(candidate, set);
      funnel.add(name, why);
      return why === null;
    });

  await refreshStatistics(store);
  const held = await findShifts(store, { agent, origin: set.on, spec: spec.version, since, until });
  const work = await openWork(home);
  try {
    const { spool, draft } = work;
    const crowd = set.kAnonymity === 1 ? null : createCrowd(set.kAnonymity, work.shelves);
    const wordings = set.nearDuplicate === 1 ? null : createWordings(work.shelves);
    const of = { seed, people: createNames(), crowd, shelves: work.shelves };
    const candidates = createCandidates<Note>({ ...of, wordings, notes: work.notes });
    const found = createCandidates<Found>({ ...of, wordings: null, notes: work.pairNotes });
    const search = searchPairs(store, { ...{ agent, spec: spec.version, settings: set, spool, found }, clean });
    // Every origin is looked at, so that the funnel also says what the guard kept out.
    for (const origin of origins as readonly Origin[])
      for await (const page of windowPages(store, { agent, origin, since, until })) {
        const seen = await lookAt(store, page, spec.version, held);
        looked += page.length;
        options.onProgress?.(looked);
        /** Those that wait to become rows, by number. */
        const rows = new Map<string, number>();
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
            const { row } = made;
            rows.set(placedKey(one), candidates.length);
            const note = { trajectory: row.trajectory, day: row.day, score: score.total, taskType: row.taskType };
            await candidates.add(
              {
                ...note,
                users: usersOf(own),
                keys: candidate.walls.keys,
                sources: candidate.walls.sources,
                tenants: candidate.walls.tenants.flatMap((tenant) => tenant ?? []),
                fingerprint: fingerprint(row),
                question: patternOf(questionOf(row.threads[0]!.messages)),
                ...(wordings !== null && { wording: wordingOf(row) }),
              },
              `${row.trajectory} ${row.day}`,
              {
                ...note,
                internal: holdsConfidential({ made }, set.confidential),
                at: await spool.add(JSON.stringify(row)),
              },
            );
          }
        }
        if (origin === set.on) await search.look(page, seen, rows);
      }
    const kept = await choose(candidates, funnel, set);
    const isRow = new Uint8Array(candidates.length);
    for (const number of kept) isRow[number] = 1;
    const chosen = { rows: 0, pairs: 0, internal: false };
    const [taskTypes, sources] = [countByName(), countByName()];
    for await (const { note, line } of linesOf(candidates.inOrder(kept), spool)) {
      await draft.add(line);
      await work.addLineage(note);
      chosen.rows++;
      chosen.internal ||= note.internal;
      taskTypes.add(note.taskType ?? 'unknown');
    }
    for await (const { pair, origins, internal } of search.choose()) {
      await draft.add(pairText(pair));
      for (const { row, ...origin } of origins) if (row === null || isRow[row] === 0) await work.addLineage(origin);
      chosen.pairs++;
      chosen.internal ||= internal;
      sources.add(pair.source);
    }
    if (chosen.rows + chosen.pairs === 0 && options.refuseEmpty) throw new NothingKept(funnel.steps());
    const about = {
      spec: spec.version,
      settings: settingsKept(set),
      seed,
      funnel: funnel.steps(),
      pairs: { rows: chosen.pairs, sources: sources.counts(), funnel: search.funnel() },
      hash: draft.hash(),
    };
    const selected: DatasetDraft = {
      ...about,
      agent,
      createdAt: now.getTime(),
      since: since.getTime(),
      until: until.getTime(),
      taskTypes: taskTypes.counts(),
      rows: chosen.rows,
      internal: chosen.internal,
      key: datasetKey(about),
      artifact: null,
    };
    return await use(selected, work.lineage, draft);
  } finally {
    await work.drop();
  }
}

/** The files of one run: none of them is left when it ends. */
async function openWork(home: string) {
  const drafts: Draft[] = [];
  const shelves: Shelf[] = [];
  const drop = async () => {
    for (const one of [...shelves, ...drafts]) await one.drop();
  };
  try {
    for (let i = 0; i < 5; i++) drafts.push(await openDraft(home));
  } catch (error) {
    await drop();
    throw error;
  }
  const [spool, draft, notes, pairNotes, origins] = drafts as [Draft, Draft, Draft, Draft, Draft];
  return {
    ...{ spool, draft, notes, pairNotes, drop },
    shelves(held?: number): Shelf {
      const shelf = openShelf(join(home, 'datasets'), held);
      shelves.push(shelf);
      return shelf;
    },
    addLineage: ({ trajectory, day, score }: DatasetRow) => origins.add(JSON.stringify({ trajectory, day, score })),
    async *lineage(): AsyncGenerator<DatasetRow> {
      for await (const line of origins.lines(0, origins.length())) yield JSON.parse(line);
    },
  };
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

/** The gates that look at all together; those left in the end. */
async function choose(candidates: Waiting, funnel: FunnelCount, settings: Settings): Promise<Uint32Array> {
  let order = candidates.ranked();
  for (const gate of setGates) {
    const { kept, left, reason } = await passing(gate, order, candidates, settings);
    funnel.add(gate.name, reason, left.length);
    funnel.add(gate.name, null, kept.length);
    order = kept;
  }
  return order;
}

/** Rows read back from the spool at a time. */
const readAtOnce = 32;

async function* linesOf(notes: AsyncGenerator<Note>, spool: Draft) {
  let few: Note[] = [];
  const read = () => Promise.all(few.map(async (note) => ({ note, line: await spool.read(note.at) })));
  for await (const note of notes) {
    if (few.push(note) < readAtOnce) continue;
    yield* await read();
    few = [];
  }
  yield* await read();
}

function countByName() {
  const counts = new Map<string, number>();
  return {
    add: (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1),
    counts: (): Record<string, number> => Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
