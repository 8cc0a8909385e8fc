/**
 * What servers that speak Tinker's protocol do differently, one record for each. Nothing else in this folder asks which server
 * it talks to: a new server is a new record. `cannot` names the checks of ../conformance.ts that a server cannot pass, with
 * the reason; docs/engine.md shows that list.
 */
export type Dialect = {
  readonly name: string;
  /**
   * How the server reduces a loss to the gradient that a step uses.
   * `sum`: over tokens, data and calls, as engine.ts has it.
   * `means`: the mean over all data since the last step of each datum's mean over its weights. A datum's share does not depend on
   * the scale of its weights, and a negative sum of them makes no sense, so data are sent in another form (batch.ts).
   */
  readonly reduction: 'sum' | 'means';
  /** Whether the answer has a place for the first token of a prompt, which nothing predicts. */
  readonly promptLogprobs: 'all' | 'without-first';
  /**
   * `isolated`: what was saved for sampling stays as it is. `shared`: sampling puts the saved weights where the model trains, so
   * that a snapshot must not be sampled there once its model has moved on (samplers.ts).
   */
  readonly snapshots: 'isolated' | 'shared';
  /** What was saved for sampling stays on the server's disk until it is deleted, and an unloaded model's gradient in its place. */
  readonly leavesTraces: boolean;
  /** Compiles for every new shape: batch sizes and lengths are rounded up to few values (shapes.ts). */
  readonly compiles: boolean;
  /** Whether `gradClipNorm` is heeded. Where it is not, steps are taken unclipped. */
  readonly clipsGradient: boolean;
  /** The gradient's norm among the metrics of a step. */
  readonly gradNorm: RegExp;
  /** The scale of every adapter, which a client cannot choose. */
  readonly alpha: number;
  /** The key is exchanged for one that lasts an hour or so. */
  readonly exchangesKey: boolean;
  /** Most data, and most bytes of JSON, in one request. */
  readonly maxRows: number;
  readonly maxBytes: number;
  /** What the refusal of a server says that was started again, or has given the session up, and knows its models no more. */
  readonly forgot: RegExp;
  readonly cannot: Readonly<Record<string, string>>;
};

/** SkyRL with its JAX backend, 0.3 and 0.4: https://github.com/NovaSky-AI/SkyRL. */
const skyrl: Dialect = {
  name: 'skyrl',
  reduction: 'means',
  promptLogprobs: 'without-first',
  snapshots: 'shared',
  leavesTraces: true,
  compiles: true,
  clipsGradient: false,
  gradNorm: /grad_norm$/,
  alpha: 32,
  exchangesKey: false,
  maxRows: 1024,
  maxBytes: 16e6,
  forgot: /\b(session|model|future)\b.*\bnot (loaded|found)/i,
  cannot: {},
};

/** Tinker as Thinking Machines hosts it. */
const tinker: Dialect = {
  name: 'tinker',
  reduction: 'sum',
  promptLogprobs: 'all',
  snapshots: 'isolated',
  leavesTraces: false,
  compiles: false,
  clipsGradient: true,
  gradNorm: /grad_norm/,
  alpha: 32,
  exchangesKey: true,
  maxRows: 1024,
  maxBytes: 4e6,
  forgot: /\b(session|model|future|promise)\b.*(not found|expired|no longer)/i,
  cannot: {},
};

export const dialects = { skyrl, tinker } as const satisfies Record<string, Dialect>;
export type DialectName = keyof typeof dialects;

/** The dialect of a server nobody named one for. */
export const dialectOf = (url: string): DialectName =>
  new URL(url).hostname.endsWith('thinkingmachines.dev') ? 'tinker' : 'skyrl';
