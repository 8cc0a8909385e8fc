import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig, parseConfig } from './config.ts';
import { ConfigError } from './errors.ts';

const parse = (input: unknown, env: NodeJS.ProcessEnv = {}) => parseConfig(input, env, '/project');

describe('parseConfig', () => {
  it('has a default for everything', () => {
    expect(parse({})).toMatchObject({
      agents: [{ name: 'agent', curate: { on: 'production' }, deploy: { holdSeconds: 86_400 } }],
      home: '/project/.pawl',
      host: '127.0.0.1',
      port: 4700,
      upstreams: {},
    });
  });

  it('reports every problem at once, each with its place', () => {
    const attempt = () =>
      parse({
        port: 70_000,
        agents: [{ name: 'Has Spaces', reward: 1, train: { stepz: 3 } }, { name: 'a' }, { name: 'a' }],
        colour: 'red',
        upstreams: { a: { baseUrl: 'ftp://x', fallback: 'b' } },
      });
    expect(attempt).toThrow(ConfigError);
    for (const part of [
      ...['port', 'colour', 'upstreams.a.baseUrl', 'agents.0.name: lower-case', 'agents.0.reward: what weighted'],
      ...['agents.0.train.stepz: there is no such setting'],
    ])
      expect(attempt).toThrow(part);
    expect(() => parse({ agents: [{ name: 'a' }, { name: 'a' }] })).toThrow(
      'agents.1.name: names another agent too: a',
    );
  });

  it('takes a server for training with its key from the environment, and refuses half of one', () => {
    const engine = { kind: 'tinker', url: 'http://127.0.0.1:8000/', baseModel: 'Qwen/Qwen3-8B', folder: 'qwen' };
    expect(parse({ engine }, { TINKER_API_KEY: 'tml-x' }).engine).toMatchObject({
      ...{ kind: 'tinker', url: 'http://127.0.0.1:8000', folder: '/project/qwen', apiKey: 'tml-x' },
    });
    expect(parse({}, { TINKER_API_KEY: 'tml-x' }).engine).toEqual({ kind: 'embedded' });
    expect(() => parse({ engine: { kind: 'tinker', baseModel: 'x' } })).toThrow(
      'engine.url: is needed where kind is tinker',
    );
    expect(() => parse({ engine: { url: 'http://a' } })).toThrow('engine.url: says nothing where kind is not tinker');
    expect(() => parse({ engine: { ...engine, adress: 'x' } })).toThrow('engine.adress: there is no such setting');
  });

  it('takes an MLflow server with its token from the environment, and nothing that is in its address', () => {
    const mlflow = { url: 'http://mlflow:5000/' };
    expect(parse({ mlflow }, { MLFLOW_TRACKING_TOKEN: 'x' }).mlflow).toEqual({
      ...{ url: 'http://mlflow:5000', experiment: 'pawl', token: 'x' },
    });
    expect(parse({}, { MLFLOW_TRACKING_TOKEN: 'x' }).mlflow).toBeUndefined();
    expect(() => parse({ mlflow: { url: 'http://ann:secret@mlflow:5000' } })).toThrow(
      'mlflow.url: without a user and password: set user and token',
    );
  });

  it('refuses a fallback that does not exist or is the upstream itself', () => {
    const upstreams = { a: { baseUrl: 'http://x/v1', fallback: 'b' }, c: { baseUrl: 'http://y/v1', fallback: 'c' } };
    expect(() => parse({ upstreams })).toThrow(/a\.fallback: names no upstream: b; there are a, c/);
    expect(() => parse({ upstreams })).toThrow(/c\.fallback: is the upstream itself/);
  });

  it('puts the environment above the file', () => {
    const env = {
      PAWL_HOME: '/elsewhere',
      PAWL_PORT: '0',
      PAWL_UPSTREAM: 'http://127.0.0.1:8000/v1/',
      PAWL_UPSTREAM_KEY: 'k',
    };
    expect(parse({ home: 'x', port: 1 }, env)).toMatchObject({
      home: '/elsewhere',
      port: 0,
      upstreams: { default: { baseUrl: 'http://127.0.0.1:8000/v1', key: 'k' } },
    });
  });

  it('names the environment variable that is wrong, not the file, and all problems together', () => {
    const env = { PAWL_UPSTREAM: 'notaurl', PAWL_PORT: 'abc', DATABASE_URL: 'mysql://u:hunter2@h/d' };
    const attempt = () => parseConfig({ agents: [{ name: 'Has Spaces' }] }, env, '/project', '/project/pawl.config.ts');
    expect(attempt).toThrow(/PAWL_UPSTREAM=notaurl: an http or https address/);
    expect(attempt).toThrow(/PAWL_PORT=abc: a whole number from 0 to 65535/);
    expect(attempt).toThrow(/DATABASE_URL: a postgres:\/\/ address/);
    expect(attempt).toThrow(/agents\.0\.name: .* \(in \/project\/pawl\.config\.ts\)/);
    expect(attempt).not.toThrow(/hunter2/);
    expect(() => parse({}, { PAWL_PORT: '70000' })).toThrow(/PAWL_PORT=70000/);
    expect(() => parse({}, { PAWL_LOG: 'loud' })).toThrow(/PAWL_LOG=loud: one of fatal, error/);
  });

  it('refuses a misspelt variable, and a key without its upstream', () => {
    expect(() => parse({}, { PAWL_UPSTRAEM: 'http://x/v1' })).toThrow(/PAWL_UPSTRAEM: .* did you mean PAWL_UPSTREAM\?/);
    expect(() => parse({}, { PAWL_UPSTREAM_KEY: 'k' })).toThrow(/PAWL_UPSTREAM_KEY: .*PAWL_UPSTREAM, which is not set/);
  });

  it('knows what Kubernetes puts into the environment of a pod', () => {
    const service = { PAWL_SERVICE_HOST: '10.0.0.1', PAWL_SERVICE_PORT: '4700', PAWL_PORT_4700_TCP_ADDR: '10.0.0.1' };
    expect(parse({}, service).port).toBe(4700);
    expect(() => parse({}, { ...service, PAWL_PORT: 'tcp://10.0.0.1:4700' })).toThrow(/enableServiceLinks/);
  });
});

describe('loadConfig', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pawl-config-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('reads a TypeScript file from any folder, whatever its package says about modules', async () => {
    writeFileSync(
      join(folder, 'pawl.config.ts'),
      `const name: string = 'desk';\nexport default { agents: [{ name }] };\n`,
    );
    expect((await loadConfig({}, {}, folder)).agents[0]!.name).toBe('desk');
  });

  it('says so when the file it was told to read is not there', async () => {
    await expect(loadConfig({ config: 'other.ts' }, {}, folder)).rejects.toThrow(/no settings file at .*other\.ts/);
  });

  it('lets the file import from this installation, as a module and as CommonJS', async () => {
    const text = `import { defineConfig } from 'pawl';\nexport default defineConfig({ agents: [{ name: 'desk' }] });\n`;
    for (const type of ['module', 'commonjs']) {
      const elsewhere = mkdtempSync(join(folder, 'else-'));
      writeFileSync(join(elsewhere, 'package.json'), JSON.stringify({ type }));
      writeFileSync(join(elsewhere, 'pawl.config.ts'), text);
      expect((await loadConfig({}, {}, elsewhere)).agents[0]!.name).toBe('desk');
    }
  });

  it('says which variables it does not know', async () => {
    const said: string[] = [];
    await loadConfig({}, { PAWL_COLOUR: 'red' }, folder, (message) => said.push(message));
    expect(said).toEqual([expect.stringMatching(/PAWL_COLOUR, and ignores it; it reads PAWL_HOME, /)]);
  });

  it('calls a home behind a link by its one name, and a link to nothing a mistake', async () => {
    const real = join(folder, 'real');
    mkdirSync(real);
    symlinkSync(real, join(folder, 'link'));
    const home = async (path: string) => (await loadConfig({}, { PAWL_HOME: path }, folder)).home;
    expect(await home(join(folder, 'link'))).toBe(await home(real));
    expect(await home(join(folder, 'link', 'new', 'deep'))).toBe(join(await home(real), 'new', 'deep'));
    symlinkSync(join(folder, 'gone'), join(folder, 'dangling'));
    await expect(home(join(folder, 'dangling'))).rejects.toThrow(/dangling is a link to .*gone, which does not exist/);
  });

  it('does without a file', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'pawl-config-'));
    expect((await loadConfig({}, {}, empty)).home).toBe(join(realpathSync(empty), '.pawl'));
    rmSync(empty, { recursive: true });
  });
});
