/** One request that was let in, as its handlers get it. Who takes it over must give its claim back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Evaluation } from './addressed.ts';
import type { Claim } from './budget.ts';
import type { Identity } from './door.ts';
import type { ErrorShape } from './error-shape.ts';
import type { ClientKey } from './keys.ts';

export type Visit = {
  readonly path: Identity;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly key: ClientKey;
  readonly claim: Claim;
  readonly errors: ErrorShape;
  /** Set for an evaluation's calls, which are not traffic (addressed.ts). */
  readonly evaluation: Evaluation | null;
};
