import { expect, test } from 'vitest';
import { askOwn, gate, gateVersion, isOwnGate } from './own-gate.ts';
import type { Row } from './row.ts';

const row: Row = { trajectory: 't', day: '2026-05-20', taskType: 'draft', score: 1, threads: [] };

test('says why, or lets through; throwing and nonsense leave out that one', () => {
  expect(
    askOwn(
      gate('a', ({ taskType }) => (taskType === 'draft' ? 'a draft' : null)),
      row,
    ),
  ).toBe('a draft');
  expect(
    askOwn(
      gate('a', () => null),
      row,
    ),
  ).toBeNull();
  const throwing = gate('a', () => {
    throw new Error('with a secret');
  });
  expect(askOwn(throwing, row)).toBe('the gate failed');
  for (const nonsense of [undefined, true, '', Promise.resolve(null), 7])
    expect(
      askOwn(
        gate('a', () => nonsense as never),
        row,
      ),
    ).toBe('the gate gave no reason');
  expect(
    askOwn(
      gate('a', () => 'x'.repeat(500)),
      row,
    ),
  ).toHaveLength(80);
});

test('cannot change what others see', () => {
  const changing = gate('a', (seen) => {
    (seen as { score: number }).score = 0;
    return null;
  });
  askOwn(changing, row);
  expect(row.score).toBe(1);
});

test('another function under the same name is another version', () => {
  const [a, b] = [gate('size', () => null), gate('size', () => 'no')];
  expect(gateVersion(a)).toMatch(/^size#[0-9a-f]{8}$/);
  expect(gateVersion(a)).not.toBe(gateVersion(b));
  expect([isOwnGate(a), isOwnGate({ name: 'x' }), isOwnGate(gate('', () => null)), isOwnGate(null)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});
