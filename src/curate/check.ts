/**
 * A second look at a dataset before it is trained on: reads all of it with today's rules, and what people wrote beside it, and
 * brings what prerequisites.ts judges. Changes nothing but for the line in the audit log when somebody goes on without a condition.
 */
import type { Agent } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { createRules, ordinaryRules } from '../collect/redact/rules.ts';
import { settledPii } from '../collect/redact/settings.ts';
import { ConflictError } from '../errors.ts';
import { readComments, readOwners } from '../store/dataset-owners.ts';
import { countedFigure } from '../store/figures.ts';
import type { Store } from '../store/postgres.ts';
import { readShiftReleases, sumScores } from '../store/shifts.ts';
import { isConfidential, textsIn } from './confidential.ts';
import { consentedLines } from './consented.ts';
import type { Dataset } from './dataset.ts';
import type { Line } from './files.ts';
import { stillHolds } from './gates.ts';
import type { PairSide } from './pair.ts';
import { searchPlanted } from './planted.ts';
import { type Condition, conditionsOf, type DatasetFacts, unready } from './prerequisites.ts';
import type { RowMessage } from './row.ts';
import { type ScoreSum, type Shift, shiftsIn } from './shifts.ts';

const wordsIn = (line: Line): unknown => {
  if (line.kind === 'row')
    return line.row.threads.map(({ messages, tools, answers }) => [
      messages,
      tools,
      answers.map((one) => one.reasoning),
    ]);
  const { prompt, tools, chosen, rejected } = line.pair;
  return [prompt, tools, [chosen, rejected].map(({ message, reasoning = '' }) => [message, reasoning])];
};

/** What came from outside, as against what the agent said and was told to do. */
const givenIn = (line: Line): string[] => {
  const messages: readonly RowMessage[] =
    line.kind === 'row' ? line.row.threads.flatMap((thread) => thread.messages) : line.pair.prompt;
  const given = messages.filter(({ role }) => role === 'user' || role === 'tool').map(({ content }) => content ?? '');
  const corrected =
    line.kind === 'pair' && 'signal' in line.pair.chosen.from ? [...textsIn(line.pair.chosen.message)] : [];
  return [...given, ...corrected];
};

const placeOf = (line: Line): { readonly day: string; readonly trajectory: string } => {
  if (line.kind === 'row') return line.row;
  const from = [line.pair.chosen, line.pair.rejected]
    .map((side: PairSide) => side.from)
    .find((one) => 'trajectory' in one);
  return from as { day: string; trajectory: string };
};

type Settings = Pick<Agent, 'curate' | 'pii'>;

export async function datasetFacts(
  store: Store,
  artifacts: Artifacts,
  dataset: Dataset,
  { curate: settings, pii }: Settings,
): Promise<DatasetFacts> {
  // The same that it was made by: what is allowed there is no leak here.
  const rules = dataset.settings.on === 'simulation' ? ordinaryRules : createRules({ settings: settledPii(pii) });
  const owners = await readOwners(store, dataset.id);
  const hasKeys = new Set([...owners.values()].flatMap(({ keys }) => keys)).size > 1;
  const search = searchPlanted(settings.canaries);
  const counts = { seen: 0, unclean: 0, personal: 0 };
  for await (const line of consentedLines(store, artifacts, dataset)) {
    counts.seen++;
    const words = wordsIn(line);
    const isPersonal = stillHolds(words, rules) !== null;
    if (isPersonal) counts.personal++;
    if (isPersonal || (settings.confidential.keep === 'out' && isConfidential(words, settings.confidential)))
      counts.unclean++;
    const { day, trajectory } = placeOf(line);
    const of = owners.get(`${day} ${trajectory}`) ?? { users: [], keys: [] };
    const whose = hasKeys ? of.keys.map((key) => `key ${key}`) : of.users.map((user) => `user ${user}`);
    search.look(givenIn(line), trajectory, whose);
  }
  const window = { agent: dataset.agent, since: new Date(dataset.since), until: new Date(dataset.until) };
  if (settings.canaries.length > 0)
    for await (const { id, text } of readComments(store, window)) search.look([text], `signal ${id}`);
  return {
    dataset: dataset.id,
    on: dataset.settings.on,
    rows: dataset.rows,
    pairs: dataset.pairs.rows,
    unclean: counts.unclean,
    personal: counts.personal,
    lapsed: dataset.rows + dataset.pairs.rows - counts.seen,
    // Datasets from before there was such a gate asked for nobody else.
    kAnonymity: dataset.settings.kAnonymity ?? 1,
    taskTypes: dataset.taskTypes,
    planted: search.found(),
    shifts: (await findShifts(store, { ...window, origin: dataset.settings.on, spec: dataset.spec })).filter(
      ({ releasedAt }) => releasedAt === null,
    ),
  };
}

/** Shifts of a window; `releasedAt`: until when somebody let them be learned from, null where nobody did. */
export const findShifts = async (store: Store, window: ShiftWindow): Promise<FoundShift[]> =>
  shiftsOf(store, window, await sumScores(store, window));

/** Of a window that ends now, with the scores as they were summed last where there are many: for a page. */
export async function lookAtShifts(
  store: Store,
  window: ShiftWindow,
  options?: { readonly isPatient?: boolean },
): Promise<{ readonly shifts: FoundShift[]; readonly countedAt: Date }> {
  const { agent, origin, spec } = window;
  const figure = { agent, name: 'shifts', of: `${origin} ${spec}` };
  const { value, countedAt } = await countedFigure(store, figure, () => sumScores(store, window), options);
  return { shifts: await shiftsOf(store, window, value), countedAt };
}

type ShiftWindow = Parameters<typeof sumScores>[1];
type FoundShift = Shift & { readonly releasedAt: Date | null };

async function shiftsOf(store: Store, window: ShiftWindow, sums: readonly ScoreSum[]): Promise<FoundShift[]> {
  const shifts = shiftsIn(sums);
  if (shifts.length === 0) return [];
  const released = await readShiftReleases(store, window.agent);
  return shifts.map((shift) => {
    const at = released.get(`${shift.key} ${shift.taskType}`) ?? null;
    return { ...shift, releasedAt: at !== null && at >= window.since ? at : null };
  });
}

export type Checked = { readonly conditions: readonly Condition[]; readonly overridden: readonly Condition[] };

/** Every condition, and those that do not hold and were named. Throws where another does not hold. */
export async function needReady(
  store: Store,
  artifacts: Artifacts,
  dataset: Dataset,
  settings: Settings,
  without: readonly string[],
): Promise<Checked> {
  const conditions = conditionsOf(await datasetFacts(store, artifacts, dataset, settings), settings.curate.require);
  const refusal = unready(dataset.id, conditions, without);
  if (refusal !== null) throw new ConflictError(refusal);
  return { conditions, overridden: conditions.filter(({ met }) => !met) };
}
