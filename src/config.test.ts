import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig, parseConfig } from './config.ts';
import { ConfigError } from './errors.ts';

const parse = (input: unknown, env: NodeJS.ProcessEnv = {}) => parseConfig(input, env, '/project');

describe('parseConfig', () => {
  it('has a default for everything', () => {
    expect(parse({})).toMatchObject({
      agent: 'agent',
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
        agent: 'Has Spaces',
        colour: 'red',
        upstreams: { a: { baseUrl: 'ftp://x', fallback: 'b' } },
      });
    expect(attempt).toThrow(ConfigError);
    for (const part of ['port', 'agent', 'colour', 'upstreams.a.baseUrl']) expect(attempt).toThrow(part);
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
    expect(() => parse({}, { PAWL_PORT: 'http' })).toThrow(/port/);
  });
});

describe('loadConfig', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pawl-config-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('reads a TypeScript file from any folder, whatever its package says about modules', async () => {
    writeFileSync(join(folder, 'pawl.config.ts'), `const agent: string = 'desk';\nexport default { agent };\n`);
    expect((await loadConfig({}, {}, folder)).agent).toBe('desk');
  });

  it('says so when the file it was told to read is not there', async () => {
    await expect(loadConfig({ config: 'other.ts' }, {}, folder)).rejects.toThrow(/no settings file at .*other\.ts/);
  });

  it('does without a file', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'pawl-config-'));
    expect((await loadConfig({}, {}, empty)).home).toBe(join(empty, '.pawl'));
    rmSync(empty, { recursive: true });
  });
});
