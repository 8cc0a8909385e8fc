import { describe, expect, it } from 'vitest';
import {
  type Answered,
  exploringBody,
  mostBytes,
  type Present,
  runsTools,
  shouldExplore,
  usageOf,
  worstCost,
} from './explore.ts';
import { exploreSettings } from './explore-settings.ts';

const answered: Answered = {
  origin: 'production',
  endpoint: 'chat',
  user: 'ann',
  status: 'ok',
  httpStatus: 200,
  bytes: 500,
};
const quiet: Present = { requests: 0, isFull: false, inFlight: 0, thisMinute: 0, isPaused: false };
const settings = exploreSettings.parse({ share: 0.25 });
const decide = (of: Partial<Answered> = {}, now: Partial<Present> = {}, drawn = 0.1, with_ = settings) =>
  shouldExplore({ ...answered, ...of }, with_, 'production', { ...quiet, ...now }, () => drawn);

describe('whether a request is explored', () => {
  it('by its share, at each temperature, with a top_p drawn for each', () => {
    const draws = [0.1, 0, 0.5, 0.99];
    const decision = shouldExplore(answered, settings, 'production', quiet, () => draws.shift()!);
    expect(decision).toEqual({
      kind: 'explore',
      calls: [
        { temperature: 0.7, topP: 0.9 },
        { temperature: 0.9, topP: 0.95 },
        { temperature: 1.1, topP: 1 },
      ],
    });
    expect(decide({}, {}, 0.25)).toEqual({ kind: 'pass' });
    expect(decide({}, {}, 0, exploreSettings.parse({}))).toEqual({ kind: 'pass' });
  });

  it('an empty list of top_p leaves the request’s own', () => {
    const decision = decide({}, {}, 0, exploreSettings.parse({ share: 1, temperatures: [1], topP: [] }));
    expect(decision).toEqual({ kind: 'explore', calls: [{ temperature: 1, topP: null }] });
  });

  it.each<[string, Partial<Answered>]>([
    ['an evaluation', { origin: 'evaluation' }],
    ['a judge’s call', { origin: 'judge' }],
    ['a further answer itself', { origin: 'exploration' }],
    ['a simulated customer, where only users teach', { origin: 'simulation' }],
    ['a request of nobody known', { user: null }],
    ['an answer that broke off', { status: 'truncated' }],
    ['a caller who left', { status: 'disconnected' }],
    ['an error', { status: 'error', httpStatus: 500 }],
    ['another wire format than chat', { endpoint: 'responses' }],
    ['a very long prompt', { bytes: mostBytes + 1 }],
  ])('never: %s', (_, of) => {
    expect(decide(of)).toEqual({ kind: 'pass' });
  });

  it('an agent that learns from simulation explores that and nothing else', () => {
    const on = (of: Partial<Answered>) => shouldExplore({ ...answered, ...of }, settings, 'simulation', quiet, () => 0);
    expect(on({ origin: 'simulation', user: null }).kind).toBe('explore');
    expect(on({}).kind).toBe('pass');
  });

  it.each<[string, Partial<Present>]>([
    ['busy', { requests: settings.whileBelow }],
    ['busy', { isFull: true }],
    ['paused', { isPaused: true }],
    ['in-flight', { inFlight: settings.inFlight }],
    ['per-minute', { thisMinute: settings.perMinute - 2 }],
  ])('is refused as %s at its limit, and not below', (reason, now) => {
    expect(decide({}, now)).toEqual({ kind: 'refused', reason });
    const below = Object.fromEntries(Object.entries(now).map(([name, at]) => [name, Number(at) - 1]));
    expect(decide({}, { ...now, ...below, isFull: false, isPaused: false }).kind).toBe('explore');
  });
});

describe('what is asked', () => {
  it('is the request with other sampling settings: one answer, whole, no exact tokens', () => {
    const body = {
      model: 'm',
      messages: [],
      temperature: 0,
      stream: true,
      stream_options: {},
      n: 4,
      seed: 1,
      top_p: 0.5,
    };
    const more = { logprobs: true, return_token_ids: true, store: true, tools: [{ type: 'function' }] };
    expect(exploringBody({ ...body, ...more }, { temperature: 0.9, topP: 0.95 }, 100)).toEqual({
      ...{ model: 'm', messages: [], temperature: 0.9, top_p: 0.95, tools: [{ type: 'function' }], max_tokens: 100 },
    });
    expect(exploringBody(body, { temperature: 1, topP: null }, 100)).toMatchObject({ temperature: 1, top_p: 0.5 });
  });

  it.each([
    [{ max_tokens: 50 }, { max_tokens: 50 }],
    [{ max_tokens: 5000 }, { max_tokens: 100 }],
    [{ max_completion_tokens: 5000 }, { max_completion_tokens: 100 }],
    [{ max_tokens: null }, { max_tokens: 100 }],
  ])('answers stay within the limit: %j', (given, expected) => {
    expect(exploringBody(given, { temperature: 1, topP: null }, 100)).toEqual({ ...expected, temperature: 1 });
  });

  it('is nothing that would make the server act', () => {
    expect(runsTools({ tools: [{ type: 'function' }, { type: 'custom' }] })).toBe(false);
    expect(runsTools({})).toBe(false);
    for (const tool of [{ type: 'web_search' }, { type: 'mcp' }, {}, null])
      expect(runsTools({ tools: [tool] })).toBe(true);
    expect(runsTools({ web_search_options: {} })).toBe(true);
  });
});

describe('what it costs', () => {
  const price = { prompt: 2, completion: 10 };

  it('at most a token for each byte, and the longest answer', () => {
    const priced = exploreSettings.parse({ price, moneyPerDay: 1, maxTokens: 1000 });
    expect(worstCost(1000, {}, priced)).toBeCloseTo(0.012);
    expect(worstCost(1000, { max_tokens: 100 }, priced)).toBeCloseTo(0.003);
  });

  it.each([
    null,
    {},
    { usage: null },
    { usage: { prompt_tokens: -1, completion_tokens: 1 } },
    { usage: { prompt_tokens: 1 } },
  ])('is not told by %j', (answer) => {
    expect(usageOf(answer)).toBeNull();
  });

  it('price and limit are set together, because one without the other does nothing', () => {
    expect(exploreSettings.safeParse({ price }).error?.issues[0]).toMatchObject({ path: ['moneyPerDay'] });
    expect(exploreSettings.safeParse({ moneyPerDay: 1 }).error?.issues[0]).toMatchObject({ path: ['price'] });
  });
});
