/**
 * All settings: one schema, parsed once, unknown keys refused, every problem reported together. Settings come from
 * pawl.config.ts (what `defineConfig` returns) and, above it, from a few environment variables. Nothing else in src/
 * reads the environment.
 */
import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tsImport } from 'tsx/esm/api';
import { z } from 'zod';
import { ConfigError } from './errors.ts';

const name = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, 'lower-case letters, digits and _ . - only, at most 63');
const baseUrl = z
  .url({ protocol: /^https?$/, error: 'an http or https address such as http://127.0.0.1:8000/v1' })
  .transform((url) => url.replace(/\/+$/, ''));

const upstream = z.strictObject({
  /** Address of an OpenAI-compatible server, up to and including /v1. */
  baseUrl,
  /** Sent as the bearer token. */
  key: z.string().min(1).optional(),
  /** Model names this upstream answers. A name no upstream lists goes to the first upstream. */
  models: z.array(z.string().min(1)).default([]),
  /** Upstream to ask when this one fails before its first byte. */
  fallback: name.optional(),
  /** Fields added to a request that does not set them, e.g. { return_token_ids: true } for vLLM. */
  defaults: z.record(z.string(), z.json()).default({}),
  /** Seconds without any byte before the upstream counts as hung. */
  silenceSeconds: z.number().positive().max(3600).default(120),
});

const schema = z
  .strictObject({
    /** Name of the agent whose traffic this is; the first client key is made for it. */
    agent: name.default('agent'),
    /** Folder of everything Pawl keeps: database, journal, keys. */
    home: z.string().min(1).default('.pawl'),
    /** PostgreSQL 14 to 18 of your own; without it Pawl runs one in its home folder. */
    databaseUrl: z.url({ protocol: /^postgres(ql)?$/, error: 'a postgres:// address' }).optional(),
    /** What user ids are hashed with, for a new database; without it one is made. An existing database knows its own. */
    secret: z.string().min(32, 'at least 32 characters, e.g. of `openssl rand -base64 32`').optional(),
    host: z.string().min(1).default('127.0.0.1'),
    /** Names by which browsers reach this server besides localhost and addresses, e.g. behind a proxy; '*' is any. */
    hosts: z.array(z.string().min(1)).default([]),
    /** Shows /metrics and the details of /healthz without a token even where others than this machine can reach them. */
    openDetails: z.boolean().default(false),
    /** 0 takes any free port. */
    port: z.int().min(0).max(65_535).default(4700),
    upstreams: z.record(name, upstream).default({}),
    /** What the loop turns on: a module and the name of its export, e.g. ./examples/support-desk/world.ts#deskWorld. */
    world: z
      .string()
      .regex(/^.+#[A-Za-z_$][\w$]*$/, 'a module, then # and the name of its export')
      .optional(),
    loop: z
      .strictObject({
        /** Simulated conversations that one turn collects. */
        conversations: z.int().min(1).max(100_000).default(240),
        /** Steps of practice (GRPO) in one turn. */
        steps: z.int().min(1).max(100_000).default(60),
      })
      .prefault({}),
    gateway: z
      .strictObject({
        maxBodyMb: z.number().positive().max(1024).default(16),
        /** Upstream calls for one request before the fallback is asked. */
        attempts: z.int().min(1).max(10).default(3),
        /** Requests in flight beyond this get 503 with Retry-After. */
        maxInFlight: z.int().min(1).max(100_000).default(4096),
        /** Memory for request bodies in flight and copies of their answers; beyond it callers get 503 with Retry-After. */
        memoryMb: z.number().positive().max(1_048_576).default(512),
      })
      .prefault({}),
    record: z
      .strictObject({
        /** Memory for exchanges waiting to be written; beyond it they are dropped and counted. */
        queueMb: z.number().positive().max(65_536).default(128),
        /** Disk for exchanges waiting for the database; beyond it they are dropped and counted. */
        journalMb: z.number().positive().default(4096),
      })
      .prefault({}),
  })
  .superRefine((config, context) => {
    for (const [from, { fallback }] of Object.entries(config.upstreams)) {
      if (fallback === undefined) continue;
      const known = Object.keys(config.upstreams).join(', ');
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

export type Config = Readonly<z.output<typeof schema>>;
export type ConfigInput = z.input<typeof schema>;
export type Upstream = Config['upstreams'][string];

/** Gives pawl.config.ts its types. */
export const defineConfig = (config: ConfigInput): ConfigInput => config;

/** Environment variables that stand above the file. */
const fromEnvironment = (env: NodeJS.ProcessEnv): Partial<ConfigInput> => ({
  ...(env.PAWL_HOME ? { home: env.PAWL_HOME } : {}),
  ...(env.DATABASE_URL ? { databaseUrl: env.DATABASE_URL } : {}),
  ...(env.PAWL_SECRET ? { secret: env.PAWL_SECRET } : {}),
  ...(env.PAWL_HOST ? { host: env.PAWL_HOST } : {}),
  ...(env.PAWL_PORT ? { port: Number(env.PAWL_PORT) } : {}),
  ...(env.PAWL_UPSTREAM
    ? {
        upstreams: {
          default: { baseUrl: env.PAWL_UPSTREAM, ...(env.PAWL_UPSTREAM_KEY ? { key: env.PAWL_UPSTREAM_KEY } : {}) },
        },
      }
    : {}),
});

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

export function parseConfig(input: unknown, env: NodeJS.ProcessEnv, folder: string, file = 'the settings'): Config {
  const layered = isObject(input) ? { ...input, ...fromEnvironment(env) } : input;
  const parsed = schema.safeParse(layered);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `  ${issue.path.join('.') || '(top level)'}: ${issue.message}`);
    throw new ConfigError(`${file} cannot be used:\n${problems.join('\n')}`);
  }
  const { home, world } = parsed.data;
  return {
    ...parsed.data,
    home: isAbsolute(home) ? home : resolve(folder, home),
    ...(world === undefined ? {} : { world: resolve(folder, world) }),
  };
}

/** Reads the file named by --config, else ./pawl.config.ts if it is there, else only the environment. */
export async function loadConfig(
  options: { config?: string },
  env = process.env,
  folder = process.cwd(),
): Promise<Config> {
  const path = options.config ? resolve(folder, options.config) : join(folder, 'pawl.config.ts');
  if (!existsSync(path)) {
    if (options.config) throw new ConfigError(`There is no settings file at ${path}.`);
    return parseConfig({}, env, folder, 'The environment');
  }
  const module: { default?: unknown } = await tsImport(pathToFileURL(path).href, import.meta.url);
  // In a folder whose package.json does not say "type": "module", the exports arrive as CommonJS: one level deeper.
  const settings = isObject(module.default) && 'default' in module.default ? module.default.default : module.default;
  if (settings === undefined)
    throw new ConfigError(`${path} exports no default; end it with \`export default defineConfig({ … })\`.`);
  return parseConfig(settings, env, folder, path);
}
