import { describe, expect, it } from 'vitest';
import { isAssigned, position, unitOf } from './assign.ts';

const users = Array.from({ length: 10_000 }, (_, i) => `u:user-${i}`);

describe('assignment', () => {
  it('keeps everybody who is in while the weight grows', () => {
    for (const user of users.slice(0, 1000)) {
      const path = [0, 0.05, 0.25, 0.5, 1].map((weight) => isAssigned('r1', user, weight));
      expect(path).toEqual([...path].sort((a, b) => Number(a) - Number(b)));
      expect(path[0]).toBe(false);
      expect(path[4]).toBe(true);
    }
  });

  it('takes the share it was asked for: of 10 000 users 500 ± 4 standard deviations of 22', () => {
    const count = users.filter((user) => isAssigned('r1', user, 0.05)).length;
    expect(Math.abs(count - 500)).toBeLessThan(88);
  });

  it('begins another rollout with other users: two shares of 25% have a quarter of each other', () => {
    const first = users.filter((user) => isAssigned('r1', user, 0.25));
    const both = first.filter((user) => isAssigned('r2', user, 0.25)).length;
    expect(Math.abs(both / first.length - 0.25)).toBeLessThan(0.04);
  });

  it('is the same number everywhere: the head of a SHA-256', () => {
    // sha256("r1\0u:ann") begins with c4156754bea6e8a2; its first 53 bits over 2^53.
    expect(position('r1', 'u:ann')).toBe(Number(0xc4156754bea6e8a2n >> 11n) / 2 ** 53);
    expect(position('r1', 'u:ann')).not.toBe(position('r1u', ':ann'));
  });

  it('goes by user, then by trajectory, and never mixes the two up', () => {
    expect(unitOf('7', 't1')).toBe('u:7');
    expect(unitOf(null, '7')).toBe('t:7');
    expect(unitOf(null, null)).toBeNull();
  });
});
