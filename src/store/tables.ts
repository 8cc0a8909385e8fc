/** The tables as Kysely sees them; migrations/*.sql is where they are made. Everything lives in the schema `pawl`. */
import type { ColumnType, Generated } from 'kysely';
import type { Sibling } from '../collect/sibling.ts';
import type { SignalKind } from '../collect/signal.ts';
import type { Consent, Origin } from '../collect/trajectory.ts';
import type { Choice } from '../collect/turn.ts';
import type { Scope } from './keys.ts';
import type { TurnColumnTypes } from './turn-columns.ts';

/** `YYYY-MM-DD`, always UTC. */
export type Day = string;
type Json<T> = ColumnType<T, string, string>;

export type KeysTable = {
  id: string;
  agent: string;
  name: string;
  hash: Buffer;
  prefix: string;
  origin: Generated<Origin>;
  scopes: Scope[];
  rate_limit: number | null;
  region: string | null;
  tenant: string | null;
  created_at: Generated<Date>;
  revoked_at: Date | null;
  last_used_at: Date | null;
};

export type ConsentTable = {
  agent: string;
  user_id: string;
  given_at: Date | null;
  withdrawn_at: Date | null;
};

export type TrajectoriesTable = {
  id: string;
  agent: string;
  day: Day;
  user_id: string | null;
  origin: Origin;
  consent: Consent;
  started_at: Date;
  ended_at: Date;
  turns: number;
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  latency_ms: number;
  release: string;
  release_at: Date;
  first_language: string | null;
  first_chars: number | null;
};

export type TurnsTable = TurnColumnTypes & {
  day: Day;
  /** Both are set for turns from before each message was stored once, and null since. */
  request: Json<Record<string, unknown>> | null;
  choices: Json<Choice[]> | null;
};

export type SiblingsTable = {
  parent: string;
  id: string;
  day: Day;
  agent: string;
  origin: Sibling['origin'];
  started_at: Date;
  latency_ms: number;
  upstream: string;
  release: string;
  model: string;
  temperature: number;
  top_p: number | null;
  choices: Json<Sibling['choices'][number][]>;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  redactions: Json<Record<string, number>>;
};

export type SignalsTable = {
  agent: string;
  identity: string;
  id: string;
  target_kind: 'turn' | 'trajectory' | 'key';
  target_id: string;
  kind: SignalKind;
  name: string;
  value: number | null;
  unit: string | null;
  user_id: string | null;
  comment: string | null;
  correction: string | null;
  at: Date;
  received_at: Date;
  key_id: string | null;
};

export type TrajectoryKeysTable = {
  agent: string;
  key: string;
  /** `turn`: the turn was not recorded yet when the key came; it is resolved when reading. */
  target_kind: 'trajectory' | 'turn';
  target_id: string;
  at: Date;
};

export type LossesTable = {
  id: Generated<number>;
  at: Generated<Date>;
  source: string;
  reason: string;
  count: number;
};

export type Tables = {
  keys: KeysTable;
  consent: ConsentTable;
  trajectories: TrajectoriesTable;
  turns: TurnsTable;
  siblings: SiblingsTable;
  signals: SignalsTable;
  trajectory_keys: TrajectoryKeysTable;
  losses: LossesTable;
};
