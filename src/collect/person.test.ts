import { expect, test } from 'vitest';
import { hashedId, MAX_ID, readableId, typedUser } from './person.ts';

test('a user becomes a keyed hash whatever the id looks like: stable, and different under another secret', () => {
  for (const raw of ['u-17', 'bob@example.com', '+82 10-1234-5678', 'x'.repeat(5000), hashedId('bob', 's')]) {
    const hashed = hashedId(raw, 's');
    expect(hashed).toMatch(/^u_[\w-]{27}$/);
    expect(hashed).not.toBe(raw);
    expect(hashedId(raw, 's')).toBe(hashed);
    expect(hashedId(raw, 'other')).not.toBe(hashed);
  }
  expect(hashedId('u-17', 's')).not.toBe(hashedId('u-18', 's'));
});

test('a trajectory or business key stays readable unless it is personal data or too long', () => {
  expect(readableId('order:1234', 's')).toBe('order:1234');
  expect(readableId('x'.repeat(MAX_ID), 's')).toHaveLength(MAX_ID);
  expect(readableId('mail:bob@example.com', 's')).toBe(hashedId('mail:bob@example.com', 's'));
  expect(readableId('x'.repeat(MAX_ID + 1), 's')).not.toBe(readableId('x'.repeat(MAX_ID + 2), 's'));
});

test('whoever looks for a user types the id that the agent sends, or says that it is the hash that a list showed', () => {
  const hashed = hashedId('u-17', 's');
  expect(typedUser('u-17', 's')).toBe(hashed);
  expect(typedUser(hashed, 's', true)).toBe(hashed);
  expect(() => typedUser('u-17', 's', true)).toThrow(/not a hash/);
});

test('who calls themselves by somebody’s hash is somebody else', () => {
  const hashed = hashedId('u-17', 's');
  expect(typedUser(hashed, 's')).toBe(hashedId(hashed, 's'));
  expect(typedUser(hashed, 's')).not.toBe(hashed);
});
