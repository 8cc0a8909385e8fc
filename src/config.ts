/**
 * All settings: one schema, parsed once, unknown keys refused, every problem reported together and with the place it came
 * from. Settings come from pawl.config.ts (what `defineConfig` returns) and, above it, from environment variables
 * (environment.ts). docs/settings.md is written from the schema (scripts/settings-page.ts).
 */
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { type Agent, agentSchema } from './agent.ts';
import { isReference } from './artifacts/artifact.ts';
import { artifactSettings } from './artifacts/settings.ts';
import { tokenPrice } from './collect/price.ts';
import { mergedPii, piiSettings } from './collect/redact/settings.ts';
import { isConfidential } from './curate/confidential.ts';
import { alertSettings, hookSettings } from './deploy/hooks-settings.ts';
import { thinkingDialects } from './deploy/release.ts';
import { engineUpstream } from './engine/open.ts';
import { engineSettings } from './engine/settings.ts';
import { misspelt, settingsFrom, unknownVariables, type Variables, variableOf } from './environment.ts';
import { ConfigError } from './errors.ts';
import { embeddingOf } from './evaluate/embed.ts';
import { retentionSettings } from './privacy/retention-settings.ts';
import { isolated } from './score/isolate.ts';
import { judgeSettings, judgingOf } from './score/judge-settings.ts';
import { rewardFrom } from './score/weighted.ts';
import { mlflowSettings } from './train/mlflow-settings.ts';
import { importUserModule } from './user-module.ts';

const name = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63');
const baseUrl = z
  .url({ protocol: /^https?$/, error: 'an http or https address such as http://127.0.0.1:8000/v1' })
  .transform((url) => url.replace(/\/+$/, ''));
/** What a number counts, for docs/settings.md. */
const counted = (unit: string) => ({ unit });

const upstream = z.strictObject({
  baseUrl: baseUrl.describe('Address of an OpenAI-compatible server, up to and including /v1.'),
  key: z.string().min(1).optional().describe('Sent to it as the bearer token.'),
  models: z
    .array(z.string().min(1))
    .default([])
    .describe('Model names this upstream answers. A name that no upstream lists goes to the first upstream.'),
  fallback: name.optional().describe('Upstream to ask when this one fails before its first byte.'),
  defaults: z
    .record(z.string(), z.json())
    .default({})
    .describe('Fields added to a request that does not set them, e.g. { return_token_ids: true } for vLLM.'),
  silenceSeconds: z
    .number()
    .positive()
    .max(3600)
    .default(120)
    .meta({ ...counted('seconds'), description: 'Without any byte for this long the upstream counts as hung.' }),
  price: tokenPrice.optional().describe('What its answers cost; without it they cost nothing.'),
  thinking: z
    .enum(thinkingDialects)
    .optional()
    .describe(
      'How it is told of a release’s thinking budget: vllm (thinking_token_budget), template (chat_template_kwargs), openrouter (reasoning), anthropic (thinking), nim (nvext). Without it, no release there has one.',
    ),
  inside: z
    .boolean()
    .default(false)
    .describe(
      'It is part of your deployment, so that models that learned from what is confidential may be served there, and a judge there may be shown it (docs/curate.md).',
    ),
  adapters: z
    .strictObject({
      kind: z.literal('vllm').describe('How it is told to load an adapter: vllm (docs/serving.md).'),
      folder: z
        .string()
        .min(1)
        .max(4096)
        .optional()
        .describe('Folder that Pawl lays adapters into and the server reads; without it `adapters` in the home.'),
      seenAs: z
        .string()
        .min(1)
        .max(4096)
        .optional()
        .describe('What the server calls that folder, where it has it under another path.'),
    })
    .optional()
    .describe('Lets releases be adapters that this server is told to load.'),
});

export const settingsSchema = z
  .strictObject({
    agents: z
      .array(agentSchema)
      .min(1, 'at least one; leave it out for an agent that is called agent')
      .max(1000)
      .default(() => [agentSchema.parse({ name: 'agent' })])
      .describe(
        'The agents of this installation, each of a file of its own; the first client key is made for the first.',
      ),
    home: z
      .string()
      .min(1)
      .default('.pawl')
      .describe('Folder of everything Pawl keeps: database, journal, datasets, runs.'),
    databaseUrl: z
      .url({ protocol: /^postgres(ql)?$/, error: 'a postgres:// address' })
      .optional()
      .describe('PostgreSQL 14 to 18 of your own; without it Pawl runs one in its home folder.'),
    artifacts: artifactSettings
      .optional()
      .describe(
        'Where datasets, models, checkpoints and suites are kept: a folder, s3://bucket/prefix, or its parts; without it a folder in the home. Several machines need the same one.',
      ),
    artifactCacheMb: z
      .number()
      .positive()
      .default(20_480)
      .meta({
        ...counted('MB'),
        description: 'Disk in the home for copies of artifacts from S3; beyond it those not used longest go.',
      }),
    secret: z
      .string()
      .min(32, 'at least 32 characters, e.g. of `openssl rand -base64 32`')
      .optional()
      .describe(
        'What user ids are hashed with, for a new database; without it one is made. An existing database knows its own.',
      ),
    adminToken: z
      .string()
      .min(32, 'at least 32 characters, e.g. of `openssl rand -base64 32`')
      .max(512)
      .regex(/^\S*$/, 'without spaces')
      .optional()
      .describe('What opens /api; without it the first start makes one and shows it once.'),
    host: z
      .string()
      .min(1)
      .default('127.0.0.1')
      .describe('Address to listen on; 0.0.0.0 is every one of this machine.'),
    hosts: z
      .array(z.string().min(1))
      .default([])
      .describe(
        "Names by which browsers reach this server besides localhost and addresses, e.g. behind a proxy; '*' is any.",
      ),
    address: baseUrl
      .optional()
      .describe(
        'Where Pawl’s other processes reach this one, e.g. http://10.0.0.5:4700; without it the address it listens on, with this machine’s name for 0.0.0.0.',
      ),
    openDetails: z
      .boolean()
      .default(false)
      .describe(
        'Shows /metrics and the details of /healthz without a token even where others than this machine can reach them.',
      ),
    port: z
      .int({ error: 'a whole number from 0 to 65535' })
      .min(0)
      .max(65_535)
      .default(4700)
      .describe('Port to listen on; 0 takes any free one.'),
    upstreams: z
      .record(name, upstream)
      .default({})
      .describe('The model servers behind the gateway, each under a name of your choice; the first is the default.'),
    judge: judgeSettings
      .optional()
      .describe('Who is asked by scorers that ask a model; without it those measure nothing (docs/score.md).'),
    engine: engineSettings.prefault({}),
    mlflow: mlflowSettings.optional().describe('Logs runs of training at an MLflow server too (docs/train.md).'),
    gateway: z
      .strictObject({
        maxBodyMb: z
          .number()
          .positive()
          .max(1024)
          .default(16)
          .meta({ ...counted('MB'), description: 'A larger request body is refused with 413.' }),
        attempts: z
          .int()
          .min(1)
          .max(10)
          .default(3)
          .meta({ ...counted('calls'), description: 'Upstream calls for one request before the fallback is asked.' }),
        maxInFlight: z
          .int()
          .min(1)
          .max(100_000)
          .default(4096)
          .meta({ ...counted('requests'), description: 'Requests in flight beyond this get 503 with Retry-After.' }),
        memoryMb: z
          .number()
          .positive()
          .max(1_048_576)
          .default(512)
          .meta({
            ...counted('MB'),
            description:
              'Memory for request bodies in flight and copies of their answers; beyond it callers get 503 with Retry-After.',
          }),
      })
      .prefault({}),
    record: z
      .strictObject({
        queueMb: z
          .number()
          .positive()
          .max(65_536)
          .default(128)
          .meta({
            ...counted('MB'),
            description: 'Memory for exchanges waiting to be written; beyond it they are dropped and counted.',
          }),
        journalMb: z
          .number()
          .positive()
          .default(4096)
          .meta({
            ...counted('MB'),
            description: 'Disk for exchanges waiting for the database; beyond it they are dropped and counted.',
          }),
      })
      .prefault({}),
    pii: piiSettings.prefault({}),
    hooks: z
      .record(name, hookSettings)
      .default({})
      .describe('Webhooks that are told what happens to releases and rollouts, each under a name of your choice.'),
    alerts: alertSettings
      .optional()
      .describe('Lets alerts of Alertmanager hold or abort rollouts, or pull the kill switch (docs/monitoring.md).'),
    retention: retentionSettings.prefault({}),
  })
  .superRefine((config, context) => {
    const names = config.agents.map((agent) => agent.name);
    for (const [i, one] of names.entries())
      if (names.indexOf(one) < i)
        context.addIssue({ code: 'custom', path: ['agents', i, 'name'], message: `names another agent too: ${one}` });
    if (engineUpstream in config.upstreams)
      context.addIssue({
        code: 'custom',
        path: ['upstreams', engineUpstream],
        message: 'is what Pawl calls its own engine; choose another name',
      });
    const known = Object.keys(config.upstreams).join(', ') || 'none';
    const judges = [
      { path: ['judge', 'upstream'], name: config.judge?.upstream },
      ...config.agents.map(({ judge }, i) => ({ path: ['agents', i, 'judge', 'upstream'], name: judge?.upstream })),
    ];
    const embedders = config.agents.map(({ evaluate }, i) => ({
      path: ['agents', i, 'evaluate', 'embeddings', 'upstream'],
      name: evaluate.embeddings?.upstream,
    }));
    for (const { path, name } of [...judges, ...embedders])
      if (name !== undefined && !(name in config.upstreams))
        context.addIssue({ code: 'custom', path, message: `names no upstream: ${name}; there are ${known}` });
    const { budget } = config.judge ?? {};
    const spends = judges.flatMap(({ name }) => (name === undefined ? [] : [name]));
    for (const name of new Set(spends))
      if ((budget?.run !== undefined || budget?.day !== undefined) && config.upstreams[name]?.price === undefined)
        context.addIssue({
          code: 'custom',
          path: ['judge', 'budget'],
          message: `needs a price: set upstreams.${name}.price too`,
        });
    for (const [from, { fallback }] of Object.entries(config.upstreams)) {
      if (fallback === undefined) continue;
      if (!(fallback in config.upstreams))
        context.addIssue({
          code: 'custom',
          path: ['upstreams', from, 'fallback'],
          message: `names no upstream: ${fallback}; there are ${known}`,
        });
      if (fallback === from)
        context.addIssue({ code: 'custom', path: ['upstreams', from, 'fallback'], message: 'is the upstream itself' });
    }
  });

export type Config = Readonly<Omit<z.output<typeof settingsSchema>, 'agents'> & { agents: Agent[] }>;
export type ConfigInput = z.input<typeof settingsSchema>;
export type Upstream = Config['upstreams'][string];

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

type Issue = { readonly path: readonly PropertyKey[]; readonly message: string };

/** A name that no setting has is a problem of its own, at its own place. */
const namedKeys = (issue: z.core.$ZodIssue): readonly Issue[] =>
  issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => ({ path: [...issue.path, key], message: 'there is no such setting' }))
    : [issue];

export function parseConfig(input: unknown, env: Variables, folder: string, file = 'the settings'): Config {
  const layered = isObject(input) ? withKeys({ ...input, ...settingsFrom(env) }, env) : input;
  const parsed = settingsSchema.safeParse(layered);
  const problems = [
    ...misspelt(env),
    ...(parsed.error?.issues ?? []).flatMap(namedKeys).map(({ path, message }) => {
      const variable = variableOf(path, env);
      const place = path.join('.') || 'the whole';
      return variable === null
        ? `${place}: ${message} (in ${file})`
        : `${variable}: ${message} (an environment variable, for ${place})`;
    }),
  ];
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(`The settings cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  const { home, artifacts, agents, engine, upstreams, judge } = parsed.data;
  return {
    ...parsed.data,
    home: realHome(resolve(folder, home)),
    artifacts: typeof artifacts === 'object' ? artifacts : resolve(folder, artifacts ?? join(home, 'artifacts')),
    agents: agents.map((agent) => ({
      ...fromFolder(agent, folder),
      judging: judgingOf(judge, agent.judge, upstreams, (words) => isConfidential(words, agent.curate.confidential)),
      embedding: embeddingOf(agent.evaluate.embeddings, upstreams),
      pii: mergedPii(parsed.data.pii, agent.pii),
    })),
    upstreams: Object.fromEntries(
      Object.entries(upstreams).map(([name, upstream]) => [
        name,
        upstream.adapters?.folder === undefined
          ? upstream
          : { ...upstream, adapters: { ...upstream.adapters, folder: resolve(folder, upstream.adapters.folder) } },
      ]),
    ),
    engine: engine.folder === undefined ? engine : { ...engine, folder: resolve(folder, engine.folder) },
  };
}

/** A key in the environment is for the server that the file names, if it names one. */
function withKeys(settings: Record<string, unknown>, env: Variables): Record<string, unknown> {
  const { engine, mlflow } = settings;
  return {
    ...settings,
    ...(env.TINKER_API_KEY && isObject(engine) && engine.kind === 'tinker'
      ? { engine: { ...engine, apiKey: env.TINKER_API_KEY } }
      : {}),
    ...(env.MLFLOW_TRACKING_TOKEN && isObject(mlflow)
      ? { mlflow: { ...mlflow, token: env.MLFLOW_TRACKING_TOKEN } }
      : {}),
  };
}

/** Files that an agent names are found from the settings' folder, wherever the command was called. */
function fromFolder(agent: Agent, folder: string): Agent {
  const { reward, train, evaluate } = agent;
  const at = (path: string | undefined) => (path === undefined || isReference(path) ? path : resolve(folder, path));
  const examples = train.replay?.examples;
  return {
    ...agent,
    reward: rewardFrom(reward, folder),
    train: {
      ...train,
      base: at(train.base),
      ...(typeof examples === 'string' ? { replay: { ...train.replay!, examples: at(examples)! } } : {}),
    },
    evaluate: { ...evaluate, golden: at(evaluate.golden), broad: at(evaluate.broad), rubric: at(evaluate.rubric) },
  };
}

/** The agent of this name, or the first where none is given. */
/** A warning, because what was recorded of an agent that is listed no more still has keys and users; null: it is listed. */
export const unlisted = ({ agents }: Pick<Config, 'agents'>, name: string): string | null =>
  agents.some((agent) => agent.name === name)
    ? null
    : `Agent ${name} is not in the settings (${agents.map((agent) => agent.name).join(', ')}): its conversations are recorded, and nothing is scored or learned from until \`agents\` lists it.`;

export function agentOf({ agents }: Pick<Config, 'agents'>, name?: string): Agent {
  const found = name === undefined ? agents[0] : agents.find((agent) => agent.name === name);
  if (found) return found;
  const known = agents.map((agent) => agent.name).join(', ');
  throw new ConfigError(`There is no agent ${name} in the settings; there is ${known}. List it in \`agents\`.`);
}

/**
 * The home by its one true name. Through a link the folder would have two, and processes that compare names (who has the
 * folder, whose database server this is) would take one home for two.
 */
function realHome(home: string): string {
  try {
    return realpathSync(home);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (lstatSync(home, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new ConfigError(
      `home: ${home} is a link to ${readlinkSync(home)}, which does not exist. Make that folder, or set PAWL_HOME to another.`,
    );
  return join(realHome(dirname(home)), basename(home));
}

/** Reads the file named by --config, else ./pawl.config.ts if it is there, else only the environment. */
export async function loadConfig(
  options: { config?: string },
  env: Variables = process.env,
  folder = process.cwd(),
  warn: (message: string) => void = (message) => console.error(message),
): Promise<Config> {
  for (const message of unknownVariables(env)) warn(message);
  const path = options.config ? resolve(folder, options.config) : join(folder, 'pawl.config.ts');
  if (!existsSync(path)) {
    if (options.config) throw new ConfigError(`There is no settings file at ${path}.`);
    return parseConfig({}, env, folder);
  }
  const { default: settings } = await importUserModule(path);
  if (settings === undefined)
    throw new ConfigError(`${path} exports no default; end it with \`export default defineConfig({ … })\`.`);
  // What the file names lies beside it; what a variable names, where the command is called.
  const at = {
    ...env,
    ...(env.PAWL_HOME ? { PAWL_HOME: resolve(folder, env.PAWL_HOME) } : {}),
    ...(env.PAWL_ARTIFACTS && !env.PAWL_ARTIFACTS.includes('://')
      ? { PAWL_ARTIFACTS: resolve(folder, env.PAWL_ARTIFACTS) }
      : {}),
  };
  const config = parseConfig(settings, at, dirname(path), path);
  return {
    ...config,
    agents: config.agents.map((agent) => ({
      ...agent,
      reward: isolated(agent.reward, { file: path, agent: agent.name }),
    })),
  };
}
