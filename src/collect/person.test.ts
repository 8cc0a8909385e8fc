import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSecret, MAX_ID, personId } from './person.ts';

test('an ordinary id is kept as it is', () => {
  expect(personId('user-1234', 's')).toBe('user-1234');
  expect(personId('x'.repeat(MAX_ID), 's')).toHaveLength(MAX_ID);
});

test('an id that is personal data, or too long, becomes a keyed hash: stable, and different under another secret', () => {
  const hashed = personId('bob@example.com', 's');
  expect(hashed).toMatch(/^u_[\w-]{27}$/);
  expect(personId('bob@example.com', 's')).toBe(hashed);
  expect(personId('bob@example.com', 'other')).not.toBe(hashed);
  expect(personId('amy@example.com', 's')).not.toBe(hashed);
  expect(personId('x'.repeat(MAX_ID + 1), 's')).not.toBe(personId('x'.repeat(MAX_ID + 2), 's'));
  expect(personId(hashed, 's')).toBe(hashed);
});

test('the secret is made once, also by several starts at once, and only its owner can read it', async () => {
  const home = await mkdtemp(join(tmpdir(), 'pawl-secret-'));
  try {
    const secrets = await Promise.all([loadSecret(home), loadSecret(home), loadSecret(home)]);
    expect(new Set(secrets).size).toBe(1);
    expect(secrets[0]).toHaveLength(43);
    expect((await stat(join(home, 'secret'))).mode & 0o777).toBe(0o600);
  } finally {
    await rm(home, { recursive: true });
  }
});
