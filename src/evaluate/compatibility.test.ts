import { describe, expect, it } from 'vitest';
import {
  besideServing,
  compatibilityGate,
  compatibilitySettings,
  covers,
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
    full: null,
    milliseconds: 100,
  },
  ...fields,
});
const unused: Used = {
  ...{ calls: 0, chats: 0, contextTokens: null, promptTokens: null, answerTokens: null },
  ...{ tools: false, structured: false, load: 0 },
};
const refused = said({ status: 400, detail: 'context length is 2048', content: '' });
const probed = (fields: Partial<Probed> = {}): Probed => ({
  ...{ template: said(), context: null, tools: null, structured: null, load: [said(), said()], full: null },
  ...fields,
});
const judge = (fields: Partial<Probed>, settings: object = {}) =>
  judgeCompatibility(probed(fields), needsOf(compatibilitySettings.parse(settings), unused));
const check = (fields: Partial<Probed>, name: string, settings: object = {}) =>
  judge(fields, settings).checks.find((one) => one.name === name)!;

describe('a release fits where it is to serve', () => {
  it('when what was asked for is taken; memory that nobody tells holds nothing up', () => {
    expect(judge({}).verdict).toBe('pass');
    expect(judge({ full: 0.5 }).checks.map(({ name }) => name)).toEqual(['template', 'latency', 'memory']);
  });

  it('not when the server refuses, cuts, or is too slow or too full', () => {
    expect(check({ template: refused }, 'template').verdict).toBe('fail');
    expect(check({ context: refused }, 'context', { contextTokens: 4096 }).reason).toMatch(/context length is 2048/);
    expect(check({ context: said({ promptTokens: 1000 }) }, 'context', { contextTokens: 4096 }).reason).toMatch(
      /saw only 1000 tokens/,
    );
    expect(check({ load: [said({ milliseconds: 2000 })] }, 'latency', { seconds: 1 }).verdict).toBe('fail');
    expect(check({ load: [said(), said({ status: 503 })] }, 'latency').reason).toMatch(/^1 of 2 requests/);
    expect(check({ full: 0.97 }, 'memory').verdict).toBe('fail');
  });

  it('with tools only when calls come back by name and their results are taken', () => {
    const call = said({ toolCalls: [{ name: 'get_weather', arguments: '{}' }] });
    expect(check({ tools: { call, after: said() } }, 'tools').verdict).toBe('pass');
    expect(check({ tools: { call, after: refused } }, 'tools').verdict).toBe('fail');
    expect(check({ tools: { call: said(), after: null } }, 'tools').verdict).toBe('inconclusive');
    const own = said({ toolCalls: [{ name: 'find_order', arguments: '{}' }] }); // the only one it ever learned to call
    expect(check({ tools: { call: own, after: said() } }, 'tools')).toMatchObject({
      ...{ verdict: 'inconclusive', reason: expect.stringContaining('called find_order') },
    });
    expect(check({ tools: { call: own, after: refused } }, 'tools').verdict).toBe('fail');
    expect(check({ tools: { call: refused, after: null } }, 'tools').verdict).toBe('fail');
  });

  it('not when a call comes back as text, or with arguments that nobody can read', () => {
    const text = said({ content: '<tool_call>\n{"name": "get_weather", "arguments": {"town": "Bern"}}\n</tool_call>' });
    expect(check({ tools: { call: text, after: null } }, 'tools')).toMatchObject({
      ...{ verdict: 'fail', reason: expect.stringContaining('as text, which the server did not read: <tool_call>') },
    });
    // No call of this tool that a server could have read.
    for (const content of ['I would use get_weather, but cannot.', '<tool_call>{"name": "find_or'])
      expect(check({ tools: { call: said({ content }), after: null } }, 'tools').verdict).toBe('inconclusive');
    const broken = said({ toolCalls: [{ name: 'get_weather', arguments: '{"town": Bern' }] });
    expect(check({ tools: { call: broken, after: said() } }, 'tools').verdict).toBe('fail');
  });

  it('with a schema only when the answer is JSON that fits', () => {
    expect(check({ structured: said({ content: '{"town":"Bern"}' }) }, 'structured').verdict).toBe('pass');
    for (const content of ['To Bern.', '{"town":7}', '{"town":"Bern","country":"CH"}'])
      expect(check({ structured: said({ content }) }, 'structured').verdict).toBe('fail');
  });

  it('not when the settings say where memory is told, and it is not told there', () => {
    const metrics = 'http://gpu-1:8000/metrics';
    expect(judge({}, { metrics }).verdict).toBe('unmeasured');
    expect(judge({ full: 0.5 }, { metrics }).verdict).toBe('pass');
  });

  it('as well as it is needed: by the settings, and where those say nothing, by the traffic', () => {
    const used: Used = {
      ...{ calls: 90, chats: 80, contextTokens: 3100, promptTokens: 1200, answerTokens: 90 },
      ...{ tools: true, structured: false, load: 6.2 },
    };
    const settings = (given: object) => compatibilitySettings.parse(given);
    expect(needsOf(settings({}), used)).toMatchObject({
      ...{ contextTokens: 3100, tools: true, structured: false, load: 7, seconds: 30, metrics: null },
      ...{ promptTokens: 1200, answerTokens: 90 },
      derived: ['template', 'latency', 'memory', 'context', 'tools', 'structured'],
    });
    expect(needsOf(settings({ contextTokens: 8000, tools: false, load: 2 }), used)).toMatchObject({
      ...{ contextTokens: 8000, tools: false, load: 2, derived: ['template', 'latency', 'memory', 'structured'] },
    });
    expect(needsOf(settings({}), { ...used, load: 900 }).load).toBe(64);
    const needs = needsOf(settings({}), used);
    expect(covers(needs, { ...needs, contextTokens: 3800 })).toBe(true); // 3100 is 82% of it
    expect(covers(needs, { ...needs, contextTokens: 4000 })).toBe(false);
    expect(covers({ ...needs, tools: false }, needs)).toBe(false);
    expect(covers({ ...needs, promptTokens: null }, needs)).toBe(false); // of a load of a few words
    expect(covers(needs, { ...needs, tools: false, load: 4 })).toBe(true);
  });

  it('as what serves does, where only the traffic says what is needed', () => {
    const found = (fields: Partial<Probed>) => judge(fields);
    const wordy = { structured: said({ content: 'To Bern.' }) };
    const needs = needsOf(compatibilitySettings.parse({}), unused);
    const beside = (candidate: Partial<Probed>, serving: Partial<Probed>, derived = needs.derived) =>
      besideServing(found(candidate), { ...needs, derived }, found(serving));
    expect(beside(wordy, wordy)).toMatchObject({ verdict: 'inconclusive' });
    expect(beside(wordy, wordy).checks[1]!.reason).toMatch(/What serves now fails this too\.$/);
    expect(beside(wordy, {}).verdict).toBe('fail');
    expect(beside(wordy, wordy, ['context']).verdict).toBe('fail'); // the settings ask for it
    const slow = { load: [said({ milliseconds: 40_000 })] };
    expect(beside(slow, slow).verdict).toBe('inconclusive');
    expect(beside(slow, {}).verdict).toBe('fail');
    expect(needsOf(compatibilitySettings.parse({ seconds: 20 }), unused).derived).not.toContain('latency');
    // Nothing said is what a poor model does; refused is what a broken template does.
    const empty = { template: said({ content: '' }), load: [said({ content: '' })] };
    expect(judge({ ...empty, load: [said(), said({ content: '' })] }).verdict).toBe('pass'); // by chance
    expect(beside(empty, empty).verdict).toBe('inconclusive');
    const broken = { template: refused, load: [] };
    expect(beside(broken, broken).verdict).toBe('fail');
  });

  it('when it thinks before it answers, and its few tokens are used up by that', () => {
    expect(judge({ template: said({ content: '', thought: true, isCut: true }) }).verdict).toBe('pass');
    expect(check({ structured: said({ content: '{"to', isCut: true }) }, 'structured').verdict).toBe('inconclusive');
  });

  it('is a gate of the report; a server that was away asks a person', () => {
    expect(compatibilityGate(judge({ full: 0.97 }))).toMatchObject({ verdict: 'fail', candidate: 2, limit: 3 });
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
