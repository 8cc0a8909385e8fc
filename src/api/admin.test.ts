import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensureAdminToken, isAdmin } from './admin.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'pawl-admin-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const ensure = async () => {
  let token = '';
  const hash = await ensureAdminToken(home, async (made) => {
    token = made;
  });
  return { token, hash };
};

test('the first call makes a token and keeps only its hash, readable by the owner alone', async () => {
  const { token, hash } = await ensure();
  const path = join(home, 'admin.json');
  expect(token).toMatch(/^pawl_admin_[\w-]{43}$/);
  expect(readFileSync(path, 'utf8')).not.toContain(token);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(isAdmin(`Bearer ${token}`, hash)).toBe(true);
});

test('later calls know the hash and never show a token', async () => {
  const { hash } = await ensure();
  expect(await ensure()).toEqual({ token: '', hash });
});

test('a token that cannot be shown is not made', async () => {
  const unshown = ensureAdminToken(home, () => Promise.reject(new Error('nobody looks')));
  await expect(unshown).rejects.toThrow('nobody looks');
  expect((await ensure()).token).toMatch(/^pawl_admin_/);
});

test('a missing, malformed or other token is not the admin’s', async () => {
  const { token, hash } = await ensure();
  for (const header of [undefined, '', 'Bearer', token, `Basic ${token}`, `Bearer ${token}x`, `Bearer a ${token}`])
    expect(isAdmin(header, hash)).toBe(false);
});

test('a damaged file is refused with the way out instead of letting anybody in', async () => {
  writeFileSync(join(home, 'admin.json'), '{"sha256":""}');
  await expect(ensure()).rejects.toThrow(/Remove the file and start Pawl again/);
});
