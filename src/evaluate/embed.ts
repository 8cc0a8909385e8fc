/**
 * How alike answers are in meaning: vectors of an embedding model at one of the installation's upstreams, for the gate on
 * diversity. What the server does not give is not measured; it is no reason for or against a candidate. Nor is it asked about
 * answers of a model that learned from what is confidential, unless it is part of the deployment.
 */
import { z } from 'zod';
import { openJudgeServer } from '../score/ask-server.ts';
import { type Embedded, firstSpoken, textOfAttempt } from './gates/diversity.ts';
import type { GatedCase } from './gates/gate.ts';

export const embeddingSettings = z.strictObject({
  upstream: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'the name of an upstream')
    .describe('Name of the upstream that is asked (`/v1/embeddings`).'),
  model: z.string().min(1).max(256).describe('Embedding model, as the upstream calls it.'),
  most: z
    .int()
    .min(10)
    .max(10_000)
    .default(500)
    .meta({ unit: 'answers', description: 'Most answers of each model; those of later cases are left out.' }),
  timeoutSeconds: z
    .number()
    .positive()
    .max(600)
    .default(30)
    .meta({ unit: 'seconds', description: 'A call without an answer after this long is tried again.' }),
  attempts: z
    .int()
    .min(1)
    .max(10)
    .default(4)
    .meta({ unit: 'calls', description: 'Calls for one answer, when the server is away or busy.' }),
});
export type EmbeddingSettings = Readonly<z.output<typeof embeddingSettings>>;

type Server = { readonly baseUrl: string; readonly key?: string | undefined; readonly inside: boolean };
export type Embedding = EmbeddingSettings & { readonly server: Server };

export const embeddingOf = (
  settings: EmbeddingSettings | undefined,
  upstreams: Readonly<Record<string, Server>>,
): Embedding | undefined => {
  const server = settings && upstreams[settings.upstream];
  return server && { ...settings, server: { baseUrl: server.baseUrl, key: server.key, inside: server.inside } };
};

/** Of one call: sixteen vectors of 4,096 numbers are 1.5 MB of JSON. */
const textsOfCall = 16;
/** Of one answer: about what the smaller of these models read of it. */
const mostCharacters = 2_000;

export async function embedAnswers(
  cases: readonly GatedCase[],
  { upstream, model, most, timeoutSeconds, attempts, server }: Embedding,
  {
    internal,
    signal = new AbortController().signal,
  }: { readonly internal: boolean; readonly signal?: AbortSignal | undefined },
): Promise<Embedded> {
  if (internal && !server.inside)
    return {
      kind: 'none',
      why: `one of the models is internal, and upstream ${upstream} is not known as part of the deployment (\`inside: true\`)`,
    };
  const { baseUrl, key } = server;
  const { embed } = openJudgeServer({
    ...{ baseUrl, key, model, timeoutSeconds, attempts },
    ...{ who: `upstream ${upstream}`, maxTokens: 1 }, // it is asked for no words
  });
  const vectorsOf = async (side: 'baseline' | 'candidate'): Promise<number[][]> => {
    const texts = firstSpoken(cases, side)
      .slice(0, most)
      .map((attempt) => textOfAttempt(attempt).slice(0, mostCharacters));
    const found: number[][] = [];
    for (let at = 0; at < texts.length; at += textsOfCall)
      found.push(...(await embed(model, texts.slice(at, at + textsOfCall), signal)).vectors);
    return found;
  };
  try {
    return { kind: 'vectors', model, baseline: await vectorsOf('baseline'), candidate: await vectorsOf('candidate') };
  } catch (error) {
    signal.throwIfAborted();
    return { kind: 'none', why: (error as Error).message };
  }
}
