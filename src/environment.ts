/**
 * Every environment variable that Pawl reads, in one list. Those that stand for a setting are laid over the settings file;
 * the others say how loudly it speaks, or are for its own child processes and tests. Pure: the environment is passed in.
 */
import type { ConfigInput } from './config.ts';

/** Like process.env, in words that need no types of Node: users' editors read config.ts's. */
export type Variables = Readonly<Record<string, string | undefined>>;

type Variable = {
  readonly sentence: string;
  /** The setting it stands for. */
  readonly setting?: readonly string[];
  /** Never printed. */
  readonly secret?: boolean;
  /** Not for users: set by Pawl for its children, or by its tests. */
  readonly inner?: boolean;
};

export const variables: Readonly<Record<string, Variable>> = {
  PAWL_HOME: { setting: ['home'], sentence: 'Folder of everything Pawl keeps.' },
  PAWL_HOST: { setting: ['host'], sentence: 'Address to listen on.' },
  PAWL_PORT: { setting: ['port'], sentence: 'Port to listen on; 0 takes any free one.' },
  PAWL_ADDRESS: { setting: ['address'], sentence: 'Where Pawl’s other processes reach this one.' },
  PAWL_UPSTREAM: {
    setting: ['upstreams', 'default', 'baseUrl'],
    sentence: 'Address of the one model server; takes the place of all `upstreams` of the file.',
  },
  PAWL_UPSTREAM_KEY: {
    setting: ['upstreams', 'default', 'key'],
    secret: true,
    sentence: 'Sent to PAWL_UPSTREAM as the bearer token.',
  },
  DATABASE_URL: { setting: ['databaseUrl'], secret: true, sentence: 'PostgreSQL 14 to 18 of your own.' },
  PAWL_ARTIFACTS: {
    setting: ['artifacts'],
    sentence: 'Where datasets, models, checkpoints and suites are kept: a folder, or s3://bucket/prefix.',
  },
  PAWL_SECRET: {
    setting: ['secret'],
    secret: true,
    sentence: 'What user ids are hashed with, for a new database.',
  },
  PAWL_ADMIN_TOKEN: { setting: ['adminToken'], secret: true, sentence: 'What opens /api.' },
  TINKER_API_KEY: {
    setting: ['engine', 'apiKey'],
    secret: true,
    sentence: 'Key of the server that trains, where `engine.kind` is `tinker`.',
  },
  MLFLOW_TRACKING_TOKEN: {
    setting: ['mlflow', 'token'],
    secret: true,
    sentence: 'What opens the MLflow server, where the file names one.',
  },
  PAWL_LOG: {
    sentence:
      'How much `pawl serve` logs on standard error: fatal, error, warn (the default), info, debug, trace, silent.',
  },
  PAWL_DEBUG: { sentence: '1: a command that fails prints where in the code it did.' },
  PAWL_ENGINE_LOAD: { inner: true, sentence: 'What the engine’s process loads at its start.' },
  PAWL_ENGINE_RESTART: { inner: true, sentence: 'The engine’s process is started again after a crash.' },
  PAWL_GATEWAY_PROCESS: { inner: true, sentence: 'Which of several gateway processes this is.' },
  PAWL_BUILT: { inner: true, sentence: 'A clone runs what was built of it: its tests and benches.' },
  PAWL_TEST_DATABASE: { inner: true, sentence: 'Tests: a superuser on a PostgreSQL of your own.' },
};

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** What the environment says of settings. An empty variable says nothing. */
export function settingsFrom(env: Variables): Partial<ConfigInput> {
  // Not a number: left as it is, so that the schema names it.
  const port = /^\d+$/.test(env.PAWL_PORT ?? '') ? Number(env.PAWL_PORT) : (env.PAWL_PORT as unknown as number);
  return {
    ...(env.PAWL_HOME ? { home: env.PAWL_HOME } : {}),
    ...(env.DATABASE_URL ? { databaseUrl: env.DATABASE_URL } : {}),
    ...(env.PAWL_ARTIFACTS ? { artifacts: env.PAWL_ARTIFACTS } : {}),
    ...(env.PAWL_SECRET ? { secret: env.PAWL_SECRET } : {}),
    ...(env.PAWL_ADMIN_TOKEN ? { adminToken: env.PAWL_ADMIN_TOKEN } : {}),
    ...(env.PAWL_HOST ? { host: env.PAWL_HOST } : {}),
    ...(env.PAWL_PORT ? { port } : {}),
    ...(env.PAWL_ADDRESS ? { address: env.PAWL_ADDRESS } : {}),
    ...(env.PAWL_UPSTREAM
      ? {
          upstreams: {
            default: { baseUrl: env.PAWL_UPSTREAM, ...(env.PAWL_UPSTREAM_KEY ? { key: env.PAWL_UPSTREAM_KEY } : {}) },
          },
        }
      : {}),
  };
}

/** `NAME=value` of the variable that set the setting at this path, the value left out where it is secret; null if none did. */
export function variableOf(path: readonly PropertyKey[], env: Variables): string | null {
  const found = Object.entries(variables).find(
    ([name, { setting }]) => setting && env[name] && setting.join('.') === path.join('.'),
  );
  if (found === undefined) return null;
  const [name, { secret }] = found;
  return secret ? name : `${name}=${env[name]}`;
}

/** Kubernetes gives every pod variables for each Service; one that is called pawl makes these. */
const byKubernetes = /^PAWL_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_\w+)$/;

const unknown = (env: Variables): string[] =>
  Object.keys(env)
    .filter((name) => name.startsWith('PAWL_') && !(name in variables) && !byKubernetes.test(name))
    .sort();

/** Letters to change, add or leave out to get from one word to the other. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}

const near = (name: string): string[] =>
  Object.keys(variables).filter((known) => !variables[known]!.inner && distance(name, known) <= 2);

/** Variables that are no doubt meant to be one of ours, and things of ours that cannot be meant. */
export function misspelt(env: Variables): string[] {
  const problems = unknown(env)
    .filter((name) => near(name).length > 0)
    .map((name) => `${name}: there is no such environment variable; did you mean ${near(name).join(' or ')}?`);
  if (env.PAWL_PORT?.startsWith('tcp://'))
    problems.push(
      'PAWL_PORT: Kubernetes has set this for a Service that is called pawl; set enableServiceLinks: false for the pod, or call the Service something else.',
    );
  if (env.PAWL_LOG && !logLevels.includes(env.PAWL_LOG))
    problems.push(`PAWL_LOG=${env.PAWL_LOG}: one of ${logLevels.join(', ')}`);
  if (env.PAWL_UPSTREAM_KEY && !env.PAWL_UPSTREAM)
    problems.push(
      'PAWL_UPSTREAM_KEY: is the key of PAWL_UPSTREAM, which is not set; put it into `upstreams` of the file.',
    );
  return problems;
}

/** Variables with our prefix that nothing reads. */
export const unknownVariables = (env: Variables): string[] =>
  unknown(env)
    .filter((name) => near(name).length === 0)
    .map((name) => {
      const known = Object.keys(variables).filter((one) => !variables[one]!.inner);
      return `Pawl does not know the environment variable ${name}, and ignores it; it reads ${known.join(', ')}.`;
    });
