/** What the loop's stages are handed: nothing here is a stage's own. */
import type { Agent } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Engine } from '../engine/engine.ts';
import type { Lead } from '../store/lead.ts';
import type { Store } from '../store/postgres.ts';
import type { Tracker } from '../train/mlflow.ts';
import type { LoopState, LoopTurn, StageName } from './turn.ts';

export type LoopParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly agent: Agent;
  /** Starts it, where that was not done yet: only a stage that needs one asks. */
  /** What serves. */
  readonly engine: () => Promise<Engine>;
  /** What trains; the same where the settings name no server for it. */
  readonly trainer: () => Promise<Engine>;
  /** Logs runs elsewhere too. */
  readonly tracker?: Tracker | undefined;
  /** Address of a gateway, without /v1; null where none runs. */
  readonly gatewayUrl: () => Promise<string | null>;
  /** Resolves once all traffic so far is in the database. */
  readonly recorded: () => Promise<void>;
  /** What is going on, for whoever watches. */
  readonly say: {
    begun?(turn: LoopTurn): void;
    progress(stage: StageName, share: number, text: string): void;
    done(stage: StageName, state: LoopState): void;
  };
  readonly signal?: AbortSignal;
  /** How often the time that a stage has worked is written down; 15 s unless told. */
  readonly noteMs?: number;
  /** What is written is written only while this stands. */
  readonly lead: Lead;
};

/** What one stage works with: the parts, a signal that also knows the budget, and what is left of that. */
export type Work = LoopParts & {
  readonly signal: AbortSignal;
  readonly left: { readonly seconds: number; readonly tokens: number | null; readonly money: number | null };
};

/** What the stage leaves for the next; null: it is not done, and what is to be done now has to be asked again. */
export type Step = (work: Work, turn: LoopTurn) => Promise<LoopState | null>;

/** The names under which a turn's run, candidate and rollout are kept: the same when the turn is entered again. */
export const runId = ({ agent, number }: Pick<LoopTurn, 'agent' | 'number'>): string => `${agent}-turn-${number}`;
export const candidateName = ({ agent, number }: Pick<LoopTurn, 'agent' | 'number'>): string => `${agent}-${number}`;

export async function ensureLoaded(
  engine: Engine,
  model: string,
  checkpoint: string,
  artifacts: Artifacts,
): Promise<void> {
  if ((await engine.models()).some(({ name }) => name === model)) return;
  await engine.load(model, await artifacts.folder(checkpoint));
}
