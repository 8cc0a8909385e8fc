import { describe, expect, it } from 'vitest';
import { compareAnswers, judgeShadow, type ShadowSummary, shadowSettings } from './shadow.ts';

const call = (name: string, given: string) => ({ tool_calls: [{ function: { name, arguments: given } }] });

describe('two answers', () => {
  it('agree where they call the same tools with the same arguments, in whatever order these stand', () => {
    const before = call('order', '{"id": 7, "open": true}');
    expect(compareAnswers(before, call('order', '{"open":true,"id":7}'))).toEqual({ agreed: true, similarity: null });
    expect(compareAnswers(before, call('order', '{"id":8,"open":true}')).agreed).toBe(false);
    expect(compareAnswers(before, { content: 'It is open.' }).agreed).toBe(false);
  });

  it('are alike as far as their words are', () => {
    // Three words in common, of four and five: 6 / 9.
    const { agreed, similarity } = compareAnswers(
      { content: 'It left on Monday' },
      { content: 'Yes: it left MONDAY morning' },
    );
    expect(agreed).toBe(true);
    expect(similarity).toBeCloseTo(6 / 9, 12);
  });
});

describe('many comparisons', () => {
  const settings = { errorRatio: 1.5, shadow: shadowSettings.parse({}) };
  const none = { p50Ms: null, p99Ms: null, tokens: null };
  const summary = (more: Partial<ShadowSummary>): ShadowSummary => ({
    ...{ compared: 100, failed: 0, agreed: 90, similarity: 0.8, baseline: none, candidate: none, slow: 0, ...more },
  });
  const ends = (more: Partial<ShadowSummary>, errors = 0) =>
    judgeShadow(summary(more), errors, settings, 0.005).map(({ end }) => end);

  it('are waited for while there are few', () => {
    expect(ends({ compared: 49 })).toEqual(['unmeasured']);
  });

  it('take a candidate back that fails or is slow, and not one that errs as the baseline does', () => {
    expect(ends({})).toEqual(['pass', 'pass', 'pass']);
    expect(ends({ failed: 30 })[0]).toBe('fail');
    expect(ends({ failed: 30 }, 0.25)[0]).toBe('pass');
    expect(ends({ slow: 20 })[1]).toBe('fail');
  });
});
