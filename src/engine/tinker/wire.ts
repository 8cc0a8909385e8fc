/**
 * The JSON of Tinker's protocol: what a client sends, as types, and what a server may answer, as schemas that are applied at the
 * door. Servers add fields of their own, which are ignored; what is missing or of another kind is refused. Written from the
 * wire as SDK 0.25 speaks it: what is trained on, and what comes of it, is protobuf there (proto.ts), which is made JSON first.
 */
import { z } from 'zod';
import type { Tokens } from '../engine.ts';

/** The version whose wire this is. */
export const sdkVersion = '0.25.0';

const id = z.string().min(1).max(512);
/** Of an archive that lies elsewhere. */
export const archiveAt = z.object({ url: z.url({ protocol: /^https?$/ }).max(10_000) });
/** What is needed of PEFT's adapter_config.json. */
export const adapterConfig = z.object({ r: z.int().min(1).max(65_536), lora_alpha: z.number().positive() });

/** Python writes a number that is none as null; in protobuf it is NaN. */
const figures = z.union([z.instanceof(Float32Array), z.array(z.number().nullable()).max(10_000_000)]);
type Figures = z.infer<typeof figures>;

export const numbersIn = (found: Figures): Float32Array =>
  found instanceof Float32Array ? found : Float32Array.from(found, (one) => one ?? Number.NaN);

export type WireTensor = {
  readonly data: ArrayLike<number>;
  readonly dtype: 'int64' | 'float32';
  readonly shape: readonly number[];
};

export type WireDatum = {
  readonly model_input: {
    readonly chunks: readonly [{ readonly type: 'encoded_text'; readonly tokens: Tokens }];
  };
  readonly loss_fn_inputs: Readonly<Record<string, WireTensor>>;
};

export type WirePass = {
  readonly data: readonly WireDatum[];
  readonly loss_fn: 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo';
  readonly loss_fn_config?: { readonly clip_low_threshold: number; readonly clip_high_threshold: number };
};

export type WireSampling = {
  readonly max_tokens: number;
  readonly seed: number;
  readonly temperature: number;
  readonly top_k: number;
  readonly top_p: number;
  readonly stop: readonly number[];
};

export const integers = (data: ArrayLike<number>): WireTensor => tensor(data, 'int64');
export const floats = (data: ArrayLike<number>): WireTensor => tensor(data, 'float32');
const tensor = (data: ArrayLike<number>, dtype: WireTensor['dtype']): WireTensor => ({
  data,
  dtype,
  shape: [data.length],
});

export const sessionAnswer = z.object({
  session_id: id,
  error_message: z.string().max(10_000).nullish(),
});
/** What is asked for is worked on; its result is a future of this id. */
export const accepted = z.object({ request_id: id });
export const samplingSession = z.object({ sampling_session_id: id });
export const anything = z.unknown();
export const clientConfig = z.object({ pjwt_auth_enabled: z.boolean().nullish() });
export const keyAnswer = z.object({ jwt: z.string().min(1).max(100_000) });

/** What a future is before it has a result; tried before the result's own schema. */
export const notYet = z.union([
  z.object({ type: z.literal('try_again') }),
  z.object({ status: z.literal('complete_metadata') }),
]);
export const failure = z.object({ error: z.string().max(1_000_000), category: z.string().max(100).nullish() });
/** FastAPI's way to say what was wrong. */
export const refusal = z.object({ detail: z.unknown() });

export const modelMade = z.object({ model_id: id });
export const passed = z.object({
  loss_fn_outputs: z.array(z.object({ logprobs: z.object({ data: figures }) })).max(100_000),
});
export const stepped = z.object({ metrics: z.record(z.string().max(1000), z.number().nullable()).nullish() });
export const saved = z.object({ path: z.string().min(1).max(4096) });
export const savedForSampling = z.object({
  path: z.string().max(4096).nullish(),
  sampling_session_id: id.nullish(),
});
export const sampled = z.object({
  sequences: z
    .array(
      z.object({
        tokens: z.union([z.instanceof(Int32Array), z.array(z.int()).max(1_000_000)]),
        logprobs: figures.nullish(),
        stop_reason: z.enum(['stop', 'length']),
      }),
    )
    .max(100_000),
  prompt_logprobs: figures.nullish(),
});

/** `tinker://RUN/weights/NAME` of training state, `tinker://RUN/sampler_weights/NAME` of what is sampled from. */
export const tinkerPath = z
  .string()
  .max(4096)
  .regex(/^tinker:\/\/[\w.:-]+\/(weights|sampler_weights)\/[\w.-]+$/, 'a reference like tinker://RUN/weights/NAME');

/** SkyRL leaves the kind out where it saved for sampling. */
export const samplerPath = (path: string): string =>
  path.replace(/^(tinker:\/\/[^/]+)\/([^/]+)$/, '$1/sampler_weights/$2');
