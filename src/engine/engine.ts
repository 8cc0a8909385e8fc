/**
 * The engine interface: what trains and samples a model. It is Tinker's, in TypeScript: `engine/onnx` implements it on
 * this machine, `engine/tinker` speaks it to a cluster. Everything in train/ and simulate/ is written against this file.
 *
 * Semantics every implementation keeps (engine/conformance.ts checks them):
 * - A loss is a plain sum over tokens, over data, and over all forwardBackward calls since the last optimStep. Nothing is
 *   averaged: normalise through weights or advantages.
 * - Position i of `tokens` predicts `targets[i]`. All per-token arrays of a datum have the length of `tokens`.
 * - Training logprobs are untempered, whatever temperature the tokens were sampled at.
 * - A snapshot never changes under a sampler: optimStep on its model does not touch it.
 */
export type Tokens = readonly number[] | Int32Array;
export type PerToken = readonly number[] | Float32Array;

/** One training example. Which optional arrays are needed depends on the loss. */
export type Datum = {
  readonly tokens: Tokens;
  readonly targets: Tokens;
  /** cross_entropy: weight of each target; 0 where the model did not write the token. Any sign is legal. */
  readonly weights?: PerToken;
  /** Policy losses: logprob of each target when it was sampled. */
  readonly logprobs?: PerToken;
  /** Policy losses: advantage of each target; 0 where the model did not write the token. */
  readonly advantages?: PerToken;
};

/** lp = new logprob, q = sampled logprob, A = advantage, w = weight, r = exp(lp − q). The loss is minimised. */
export type Loss =
  /** −Σ w·lp */
  | { readonly kind: 'cross_entropy' }
  /** −Σ r·A */
  | { readonly kind: 'importance_sampling' }
  /** −Σ min(r·A, clip(r, clipLow, clipHigh)·A); bounds are ratios, e.g. 0.8 and 1.28 */
  | { readonly kind: 'ppo'; readonly clipLow: number; readonly clipHigh: number }
  /** −Σ stopgrad(clip(r, clipLow, clipHigh))·A·lp */
  | { readonly kind: 'cispo'; readonly clipLow: number; readonly clipHigh: number };

export type ForwardResult = {
  /** The sum over all data. */
  readonly loss: number;
  /** [datum][token]: logprob of each target under the current weights. */
  readonly logprobs: readonly Float32Array[];
  /** [datum][token]: entropy in nats of the next-token distribution, where the implementation has it. */
  readonly entropies?: readonly Float32Array[];
};

export type AdamParams = {
  readonly learningRate: number;
  readonly beta1?: number; // 0.9
  readonly beta2?: number; // 0.95
  readonly eps?: number; // 1e-8
  /** Decoupled (AdamW). */
  readonly weightDecay?: number; // 0
  /** Global norm; 0 means no clipping. */
  readonly gradClipNorm?: number; // 0
};

export type StepResult = {
  /** Global norm of the summed gradient before clipping; null where a server does not say. */
  readonly gradNorm: number | null;
  /** Version of the weights after the step. */
  readonly version: number;
};

export type LoraSpec = {
  readonly rank: number;
  readonly alpha: number;
  /** Names of the linear layers to adapt, e.g. q_proj, v_proj. Default: all of attention and MLP. */
  readonly targets?: readonly string[];
  readonly seed?: number;
};

export type SampleParams = {
  readonly maxTokens: number;
  readonly temperature?: number; // 1; 0 is greedy
  readonly topP?: number; // 1
  readonly topK?: number; // 0: off
  readonly minP?: number; // 0: off
  /** Same seed, same weights, same prompt and parameters: same tokens, whatever else is in the batch. */
  readonly seed?: number;
  readonly stopTokens?: readonly number[];
  /** Generation ends when the decoded text contains one of these; needs a model with a tokenizer. */
  readonly stop?: readonly string[];
  /** Attempts per prompt; they share the prompt's computation. */
  readonly n?: number; // 1
  readonly promptLogprobs?: boolean;
};

export type Sample = {
  readonly tokens: Int32Array;
  /** Logprob of each token in the distribution it was drawn from (after temperature and truncation). */
  readonly logprobs: Float32Array;
  /** Logprob of each token under the plain model (temperature 1): what training compares with. */
  readonly rawLogprobs: Float32Array;
  readonly finish: 'stop' | 'length';
};

export type SampleResult = {
  /** [attempt] */
  readonly samples: readonly Sample[];
  /** [token]: logprob of each prompt token; the first is NaN. Present when asked for. */
  readonly promptLogprobs?: Float32Array;
  /** Version of the weights that answered. */
  readonly version: number;
};

export type ModelInfo = {
  readonly name: string;
  readonly kind: 'trainable' | 'snapshot';
  readonly parameters: number;
  readonly trainableParameters: number;
  readonly vocabulary: number;
  readonly context: number;
  readonly version: number;
  /** Memory held, in bytes. */
  readonly bytes: number;
  readonly lora?: LoraSpec;
};

/** How an engine works, for those who use it well. */
export type EngineTraits = {
  /** Whether it computes in this process. */
  readonly computesHere: boolean;
  /** Whether a snapshot can be sampled while its model trains, at no cost but the computing. */
  readonly overlaps: boolean;
  /** Whether it is part of the deployment, so that what is confidential may be given to it. */
  readonly isInside: boolean;
};

export interface Engine {
  readonly traits: EngineTraits;
  /**
   * Loads a checkpoint folder in the Hugging Face layout under a name, for training and sampling. Optimizer state beside
   * the weights is restored. `lora` adds a fresh adapter to a full checkpoint; a folder that holds an adapter brings its own.
   */
  load(name: string, folder: string, options?: { readonly lora?: LoraSpec }): Promise<ModelInfo>;
  models(): Promise<readonly ModelInfo[]>;
  forward(model: string, data: readonly Datum[]): Promise<ForwardResult>;
  forwardBackward(model: string, data: readonly Datum[], loss: Loss): Promise<ForwardResult>;
  /** One AdamW step with the gradient summed since the last one, which it clears. */
  optimStep(model: string, adam: AdamParams): Promise<StepResult>;
  /** [prompt] → its attempts. `onToken` sees tokens as they come. Aborting stops the work. */
  sample(
    model: string,
    prompts: readonly Tokens[],
    params: SampleParams,
    options?: {
      readonly onToken?: (prompt: number, attempt: number, token: number) => void;
      readonly signal?: AbortSignal;
    },
  ): Promise<readonly SampleResult[]>;
  /** Writes a checkpoint folder (weights; optimizer state unless `optimizer` is false). All of it appears or nothing. */
  save(model: string, folder: string, options?: { readonly optimizer?: boolean }): Promise<void>;
  /** A frozen copy of the current weights under a new name, for sampling only. */
  snapshot(model: string, name: string): Promise<ModelInfo>;
  unload(name: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Any differentiable loss of the logprobs, through the interface above: a forward, the caller's gradient, and a
 * cross_entropy whose weights are −∂C/∂logprob. `gradient` returns the loss and ∂C/∂logprob for every token of every datum.
 */
export async function forwardBackwardCustom(
  engine: Engine,
  model: string,
  data: readonly Datum[],
  gradient: (logprobs: readonly Float32Array[]) => { loss: number; gradients: readonly PerToken[] },
): Promise<ForwardResult> {
  const before = await engine.forward(model, data);
  const { loss, gradients } = gradient(before.logprobs);
  const weighted = data.map(({ tokens, targets }, i) => ({
    tokens,
    targets,
    weights: Float32Array.from(gradients[i]!, (g) => -g),
  }));
  const after = await engine.forwardBackward(model, weighted, { kind: 'cross_entropy' });
  return { ...after, loss };
}
