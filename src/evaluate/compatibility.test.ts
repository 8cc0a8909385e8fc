import { describe, expect, it } from 'vitest';
import {
  compatibilityGate,
  compatibilitySettings,
  judgeCompatibility,
  needsOf,
  type Probe,
  type Probed,
  type Used,
} from './compatibility.ts';
import { cacheUse } from './probe.ts';

const said = (fields: Partial<Probe> = {}): Probe => ({
  ...{
    status: 200,
    detail: '',
    content: 'Yes.',
    thought: false,
    isCut: false,
    toolCalls: [],
    promptTokens: 20,
    milliseconds: 100,
  },
  ...fields,
});
const unused: Used = { calls: 0, chats: 0, contextTokens: null, tools: false, structured: false, load: 0 };
const refused = said({ status: 400, detail: 'context length is 2048', content: '' });
const probed = (fields: Partial<Probed> = {}): Probed => ({
  ...{ template: said(), context: null, tools: null, structured: null, load: [said(), said()], cache: null },
  ...fields,
});
const judge = (fields: Partial<Probed>, settings: object = {}) =>
  judgeCompatibility(probed(fields), needsOf(compatibilitySettings.parse(settings), unused));
const check = (fields: Partial<Probed>, name: string, settings: object = {}) =>
  judge(fields, settings).checks.find((one) => one.name === name)!;

describe('a release fits where it is to serve', () => {
  it('when what was asked for is taken; memory that nobody tells holds nothing up', () => {
    expect(judge({}).verdict).toBe('pass');
    expect(judge({ cache: 0.5 }).checks.map(({ name }) => name)).toEqual(['template', 'latency', 'memory']);
  });

  it('not when the server refuses, cuts, or is too slow or too full', () => {
    expect(check({ template: refused }, 'template').verdict).toBe('fail');
    expect(check({ context: refused }, 'context', { contextTokens: 4096 }).reason).toMatch(/context length is 2048/);
    expect(check({ context: said({ promptTokens: 1000 }) }, 'context', { contextTokens: 4096 }).reason).toMatch(
      /saw only 1000 tokens/,
    );
    expect(check({ load: [said({ milliseconds: 2000 })] }, 'latency', { seconds: 1 }).verdict).toBe('fail');
    expect(check({ load: [said(), said({ status: 503 })] }, 'latency').reason).toMatch(/^1 of 2 requests/);
    expect(check({ cache: 0.97 }, 'memory').verdict).toBe('fail');
  });

  it('with tools only when calls come back by name and their results are taken', () => {
    const call = said({ toolCalls: [{ name: 'get_weather', arguments: '{}' }] });
    expect(check({ tools: { call, after: said() } }, 'tools').verdict).toBe('pass');
    expect(check({ tools: { call, after: refused } }, 'tools').verdict).toBe('fail');
    expect(check({ tools: { call: said(), after: null } }, 'tools').verdict).toBe('inconclusive');
    expect(check({ tools: { call: refused, after: null } }, 'tools').verdict).toBe('fail');
  });

  it('with a schema only when the answer is JSON that fits', () => {
    expect(check({ structured: said({ content: '{"town":"Bern"}' }) }, 'structured').verdict).toBe('pass');
    expect(check({ structured: said({ content: 'To Bern.' }) }, 'structured').verdict).toBe('fail');
  });

  it('is a gate of the report; a server that was away asks a person', () => {
    expect(compatibilityGate(judge({ cache: 0.97 }))).toMatchObject({ verdict: 'fail', candidate: 2, limit: 3 });
    const away = said({ status: 0, detail: 'connection refused', content: '' });
    expect(compatibilityGate(judge({ template: away }))).toMatchObject({ verdict: 'inconclusive' });
  });
});

it('reads how full a cache is from the pages of model servers', () => {
  const page =
    '# HELP x\nvllm:kv_cache_usage_perc{model_name="a"} 0.25\nvllm:kv_cache_usage_perc{model_name="b"} 0.5\n';
  expect(cacheUse(page)).toBe(0.5);
  expect(cacheUse('up 1\n')).toBeNull();
});
