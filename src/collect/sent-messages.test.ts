import { expect, test } from 'vitest';
import { createSentMessages } from './sent-messages.ts';

const noon = Date.UTC(2026, 4, 20, 12);
const minutes = 60_000;

test('a message is known once the journal has it, for a few minutes, to turns of the same agent and day', () => {
  const sent = createSentMessages('s');
  const desk = { agent: 'desk', startedAt: noon };
  const isKnown = (of: typeof desk, at: number) => sent.naming(of, at).isKnown('a', null);
  const first = sent.naming(desk, 0);
  expect(first.isKnown('a', null)).toBe(false);
  expect(isKnown(desk, 1)).toBe(false); // not acknowledged yet
  first.acknowledged();
  expect(isKnown(desk, 4 * minutes)).toBe(true);
  expect(isKnown({ ...desk, agent: 'shop' }, 1)).toBe(false);
  expect(isKnown({ ...desk, startedAt: noon + 12 * 60 * minutes }, 1)).toBe(false);
  expect(isKnown(desk, 5 * minutes)).toBe(false);
  const again = sent.naming(desk, 5 * minutes);
  again.isKnown('a', null);
  again.acknowledged();
  expect(isKnown(desk, 9 * minutes)).toBe(true);
});

test('a piece of a list is known as long as the oldest of what is in it', () => {
  const sent = createSentMessages('s');
  const desk = { agent: 'desk', startedAt: noon };
  const carry = (at: number, ...hashes: string[]) => {
    const naming = sent.naming(desk, at);
    const asked = [naming.isKnown('piece', ['a', 'b'])];
    if (!asked[0]) asked.push(...hashes.map((hash) => naming.isKnown(hash, null)));
    naming.acknowledged();
    return asked;
  };
  const alone = sent.naming(desk, 0);
  alone.isKnown('a', null);
  alone.acknowledged();
  expect(carry(3 * minutes, 'a', 'b')).toEqual([false, true, false]);
  expect(carry(5 * minutes - 1, 'a', 'b')).toEqual([true]);
  expect(carry(5 * minutes, 'a', 'b')).toEqual([false, false, true]);
});
