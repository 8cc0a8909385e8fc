/**
 * The words of collecting, and the record of one whole conversation.
 *
 * trajectory   one conversation or task of an agent: its turns in order
 * turn         one model call inside it (turn.ts)
 * signal       evidence about a trajectory or a turn: feedback, outcome (signal.ts)
 * origin       where the traffic came from; only `production` is what users did
 * consent      whether the user had agreed to training when the trajectory was collected
 */
import { z } from 'zod';

export const origins = ['production', 'exploration', 'shadow', 'simulation', 'evaluation', 'judge'] as const;
export type Origin = (typeof origins)[number];

/** `unknown`: no user id, or nobody ever said. Only `given` may become training data. */
export const consents = ['given', 'withdrawn', 'unknown'] as const;
export type Consent = (typeof consents)[number];

/** Ids that clients choose. No spaces, slashes or '@', so an id is never an address and fits in a path and a header. */
export const trajectoryId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/, 'letters, digits and _ . : - only, at most 128');

/** One line of the list of trajectories; the sum of its turns. */
export type Trajectory = {
  readonly id: string;
  readonly agent: string;
  readonly user: string | null;
  readonly origin: Origin;
  readonly consent: Consent;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly turns: number;
  readonly errors: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Sum over turns of the time a caller waited. */
  readonly latencyMs: number;
  /** The release of the latest turn. */
  readonly release: string;
};
