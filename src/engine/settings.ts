/**
 * Which engine trains, and its limits. The embedded one needs no settings. A server that speaks Tinker's protocol trains adapters over the
 * one model it holds, named as the server names it; the same model lies in a folder here, for its config and tokenizer. Serving
 * stays with the embedded engine either way, so its limits mean something for both.
 */
import { z } from 'zod';

/** What a number counts, for docs/settings.md. */
const counted = (unit: string) => ({ unit });

const ofTinker = [
  'url',
  'apiKey',
  'baseModel',
  'folder',
  'dialect',
  'rank',
  'patienceSeconds',
  'waitSeconds',
  'inside',
] as const;

export const engineSettings = z
  .strictObject({
    kind: z
      .enum(['embedded', 'tinker'])
      .default('embedded')
      .describe('What trains: the engine in Pawl itself, or a server that speaks Tinker’s protocol (docs/engines.md).'),
    threads: z
      .int()
      .min(1)
      .max(1024)
      .optional()
      .meta({ ...counted('threads'), description: 'Threads of one computation; without it all cores.' }),
    memoryMb: z
      .number()
      .positive()
      .optional()
      .meta({ ...counted('MB'), description: 'Most memory for all models; without it three quarters of all.' }),
    url: z
      .url({ protocol: /^https?$/, error: 'an http or https address such as http://127.0.0.1:8000' })
      .transform((url) => url.replace(/\/+$/, ''))
      .optional()
      .describe('Tinker: address of the server, up to and without /api/v1.'),
    apiKey: z.string().min(1).max(10_000).optional().describe('Tinker: the server’s key; better in the environment.'),
    baseModel: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe('Tinker: the model that the server holds, by the name it has there.'),
    folder: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe(
        'Tinker: folder of that model here, with config.json and tokenizer; without it `baseModel` must be one. It is also what `train.base` names.',
      ),
    dialect: z
      .enum(['skyrl', 'tinker'])
      .optional()
      .describe('Tinker: what the server is; without it `tinker` at thinkingmachines.dev and `skyrl` elsewhere.'),
    rank: z
      .int()
      .min(1)
      .max(1024)
      .optional()
      .describe('Tinker: rank of an adapter where `train.lora` names none; without it 16.'),
    inside: z
      .boolean()
      .optional()
      .describe(
        'Tinker: the server is part of your deployment, so that datasets and models that are internal may be given to it (docs/curate.md).',
      ),
    patienceSeconds: z
      .number()
      .positive()
      .max(86_400)
      .optional()
      .meta({
        ...counted('seconds'),
        description: 'Tinker: how long a server that cannot be reached, or is too busy, is waited for; without it 300.',
      }),
    waitSeconds: z
      .number()
      .positive()
      .max(86_400)
      .optional()
      .meta({
        ...counted('seconds'),
        description: 'Tinker: how long one request may take, compiling included; without it 3600.',
      }),
  })
  .superRefine((settings, context) => {
    if (settings.kind === 'tinker') {
      for (const needed of ['url', 'baseModel'] as const)
        if (settings[needed] === undefined)
          context.addIssue({ code: 'custom', path: [needed], message: 'is needed where kind is tinker' });
      return;
    }
    for (const name of ofTinker)
      if (settings[name] !== undefined)
        context.addIssue({
          code: 'custom',
          path: [name],
          message: 'says nothing where kind is not tinker; set kind too',
        });
  });

export type EngineSettings = Readonly<Omit<z.output<typeof engineSettings>, 'kind'>> & {
  readonly kind?: z.output<typeof engineSettings>['kind'];
};
