import { describe, expect, it } from 'vitest';
import { ownCount, refuseStale, sequences, supervisedDatum } from './datum.ts';

describe('sequences', () => {
  it('shift by one and mark only what the model wrote', () => {
    const [s] = sequences([{ prompt: [10, 11], completion: [12, 13], logprobs: [-1, -2] }]);
    expect([...s!.tokens]).toEqual([10, 11, 12]);
    expect([...s!.targets]).toEqual([11, 12, 13]);
    expect([...s!.turns]).toEqual([-1, 0, 0]);
    expect([...s!.logprobs]).toEqual([0, -1, -2]);
    expect([...supervisedDatum(s!, () => 0.5).weights!]).toEqual([0, 0.5, 0.5]);
  });

  it('put turns into one sequence while each prompt extends what was there, and learn nothing from tool results', () => {
    const all = sequences([
      { prompt: [1], completion: [2] },
      { prompt: [1, 2, 7, 8], completion: [3] },
    ]);
    expect(all).toHaveLength(1);
    expect([...all[0]!.targets]).toEqual([2, 7, 8, 3]);
    expect([...all[0]!.turns]).toEqual([0, -1, -1, 1]);
    expect(ownCount(all[0]!)).toBe(2);
  });

  it('begin anew where a prompt does not extend the tokens before it', () => {
    const all = sequences([
      { prompt: [1], completion: [2] },
      { prompt: [1, 5], completion: [3] },
    ]);
    expect(all.map((s) => [...s.targets])).toEqual([[2], [5, 3]]);
    expect([...all[1]!.turns]).toEqual([-1, 1]);
  });

  it('of agents that take turns go on each with its own, and a branch learns nothing twice', () => {
    const all = sequences([
      { prompt: [1], completion: [2] },
      { prompt: [5], completion: [6] },
      { prompt: [1, 2, 7], completion: [3] },
      { prompt: [5, 6, 7], completion: [8] },
      { prompt: [1, 2, 9], completion: [4] },
    ]);
    expect(all.map((s) => [...s.targets])).toEqual([
      [2, 7, 3],
      [6, 7, 8],
      [2, 9, 4],
    ]);
    expect(all.map((s) => [...s.turns])).toEqual([
      [0, -1, 2],
      [1, -1, 3],
      [-1, -1, 4],
    ]);
  });

  it('refuse logprobs that are not one per token, and prompts that are empty', () => {
    expect(() => sequences([{ prompt: [1], completion: [2, 3], logprobs: [-1] }])).toThrow(/2 tokens and 1 logprobs/);
    expect(() => sequences([{ prompt: [], completion: [2] }])).toThrow(/empty prompt/);
  });
});

describe('stale attempts', () => {
  const at = (version: number) => [
    { id: 'a', task: 't', taskType: 'x', reward: 0, success: false, version, turns: [] },
  ];

  it('are refused when other weights wrote them than allowed', () => {
    expect(() => refuseStale(at(4), 5, 0)).toThrow(/version 4, the trainer holds 5/);
    expect(() => refuseStale(at(4), 5, 1)).not.toThrow();
    expect(() => refuseStale(at(6), 5, 1)).toThrow(/version 6/);
  });
});
