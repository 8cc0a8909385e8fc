/**
 * From what somebody asks for to the run it is: which model is made better, on whose dataset, under which name. The one way for
 * the command and the API; the loop has its own base and names.
 */
import type { Agent } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../audit.ts';
import { trajectoryId } from '../collect/trajectory.ts';
import { type Checked, needReady } from '../curate/check.ts';
import type { Dataset } from '../curate/dataset.ts';
import type { ConditionName } from '../curate/prerequisites.ts';
import { datasetReader } from '../curate/read.ts';
import { engineWeights } from '../engine/open.ts';
import { ConfigError, NotFoundError } from '../errors.ts';
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { servingRelease } from '../store/releases.ts';
import { noBase } from './advise-stored.ts';
import { type Specified, type SpecOptions, specOf } from './plan.ts';
import type { RunRecord, RunStore } from './run-record.ts';

/** What is set for this run, above its agent's file. */
export type AskedRun = Omit<SpecOptions, 'base'> & {
  /** Conditions of its dataset to go on without (curate/prerequisites.ts), besides those of the agent's file. */
  readonly without?: readonly ConditionName[] | undefined;
  readonly base?: string | undefined;
  /** Rank of an adapter to train instead of all weights. */
  readonly lora?: number | undefined;
};

export async function specAsked(
  { store, artifacts, agent }: { readonly store: Store; readonly artifacts: Artifacts; readonly agent: Agent },
  { lora, without = [], ...asked }: AskedRun,
): Promise<Specified & Pick<Checked, 'overridden'>> {
  const { dataset, budget, overrides } = asked;
  if (budget?.money !== undefined && (overrides?.moneyPerHour ?? agent.train.moneyPerHour) === undefined)
    throw new ConfigError(
      `A budget of ${budget.money} needs a price: give --money-per-hour (moneyPerHour by HTTP), or set train.moneyPerHour of ${agent.name}.`,
    );
  const learned = dataset === undefined ? null : await needDataset(store, dataset);
  if (learned !== null) refuseForeign(learned, agent.name);
  const base = asked.base ?? (await baseOf(store, agent));
  if (base === null) throw new ConfigError(`${noBase(agent.name)} Give a base, or set train.base.`);
  const adapter = lora === undefined ? {} : { lora: { rank: lora, alpha: agent.train.lora?.alpha ?? 2 * lora } };
  const reader = datasetReader(store, artifacts);
  const specified = await specOf(agent, { ...asked, base, overrides: { ...overrides, ...adapter } }, reader);
  if (learned === null || specified.unused.includes('dataset')) return { ...specified, overridden: [] };
  const may = [...agent.train.without, ...without];
  const present = await presentDataset(store, learned);
  return { ...specified, overridden: (await needReady(store, artifacts, present, agent, may)).overridden };
}

/** Itself, or what took its place where somebody was erased. */
export async function presentDataset(store: Store, dataset: Dataset): Promise<Dataset> {
  let present = dataset;
  while (present.gone?.replacedBy) present = await needDataset(store, present.gone.replacedBy);
  return present;
}

/** That a run began on a dataset of which not everything holds that should, and what was done without. */
export async function auditOverride(
  store: Store,
  { agent, id, settings: { dataset } }: Pick<RunRecord, 'agent' | 'id' | 'settings'>,
  overridden: Checked['overridden'],
  actor: string,
): Promise<void> {
  if (overridden.length === 0) return;
  const without = Object.fromEntries(overridden.map(({ name, found, needed }) => [name, { found, needed }]));
  const event = 'prerequisites-overridden';
  await audit(store.db, { agent, actor, event, subject: id, details: { dataset, without }, at: Date.now() });
}

export async function needDataset(store: Store, id: string): Promise<Dataset> {
  const dataset = await readDataset(store, { id });
  if (dataset !== null) return dataset;
  throw new NotFoundError(`There is no dataset ${id}; \`pawl datasets list\` shows those that exist.`);
}

/** What users of one agent agreed to is not another's to learn from. */
function refuseForeign({ id, agent }: Dataset, name: string): void {
  if (agent === name) return;
  throw new ConfigError(
    `Dataset ${id} is of agent ${agent}, and this run would be of ${name}: what its users agreed to holds for ${agent} alone. Name agent ${agent}, or a dataset of ${name}.`,
  );
}

/** What serves is what is made better. */
export const baseOf = async (store: Store, agent: Pick<Agent, 'name' | 'train'>): Promise<string | null> => {
  const serving = await servingRelease(store, agent.name);
  return (serving && engineWeights(serving)) ?? agent.train.base ?? null;
};

/** The name that was asked for, if it is free; else one made from recipe and time. */
export async function nameRun(runs: RunStore, recipe: string, asked: string | undefined, now: Date): Promise<string> {
  const id = asked ?? `${recipe}-${now.toISOString().replace(/[-:]/g, '').slice(0, 15)}`;
  if (trajectoryId.safeParse(id).success && (await runs.get(id)) === null) return id;
  throw new ConfigError(`${id} cannot name this run: ids are letters, digits and _ . : -, and used once.`);
}
