import { expect, test } from 'vitest';
import { createRecent } from './recent.ts';

test('the latest half of the limit is always there, and never more than the limit', () => {
  const recent = createRecent<number>(10);
  for (let i = 0; i < 100; i++) {
    recent.set(`k${i}`, i);
    expect(recent.size()).toBeLessThanOrEqual(10);
    for (let back = 0; back < Math.min(5, i + 1); back++) expect(recent.get(`k${i - back}`)).toBe(i - back);
  }
  expect(recent.get('k89')).toBeUndefined();
});

test('setting a key again replaces its value and costs no room', () => {
  const recent = createRecent<string>(4);
  recent.set('a', 'first');
  for (let i = 0; i < 10; i++) recent.set('b', `${i}`);
  expect(recent.get('a')).toBe('first');
  expect(recent.get('b')).toBe('9');
});

test('weights count: what is too heavy for half the limit is not kept', () => {
  const recent = createRecent<true>(10);
  recent.set('light', true, 2);
  recent.set('too heavy', true, 6);
  recent.set('heavy', true, 5);
  expect([recent.get('light'), recent.get('too heavy'), recent.get('heavy')]).toEqual([true, undefined, true]);
  recent.set('next', true, 1);
  expect(recent.get('light')).toBeUndefined();
});

test('what has aged twice is forgotten', () => {
  const recent = createRecent<number>(10);
  recent.set('a', 1);
  recent.age();
  expect(recent.get('a')).toBe(1);
  recent.age();
  expect(recent.get('a')).toBeUndefined();
});
