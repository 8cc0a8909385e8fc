import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { StoredRoute } from '../store/rollouts.ts';
import type { ClientKey } from './keys.ts';
import { openLastKnown } from './last-known.ts';

let home: string;
let said: string[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'pawl-known-'));
  said = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));
const open = () => openLastKnown(home, (message) => said.push(message));
const file = () => join(home, 'last-known.json');

const key: ClientKey = { id: '1', agent: 'desk', name: 'web', origin: 'production', scopes: ['call'], rateLimit: 60 };
const keys = new Map([['a'.repeat(64), key]]);
const release = { id: 'release-1', agent: 'desk', name: 'v1', upstream: 'vllm', model: 'm' };
const routes = [{ agent: 'desk', aliases: ['d'], release, open: null }] as unknown as StoredRoute[];

test('keeps keys and routes for the next start, readable by the owner alone', () => {
  expect(open()).toMatchObject({ keys: new Map(), routes: [], asOf: null });
  const first = open();
  first.keep({ keys });
  first.keep({ routes });
  const next = open();
  expect([next.keys, next.routes]).toEqual([keys, routes]);
  expect(next.asOf).toBeGreaterThan(Date.now() - 60_000);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(readdirSync(home)).toEqual(['last-known.json']);
});

test('a revocation that is learned is gone from the file', () => {
  const known = open();
  known.keep({ keys, routes });
  known.keep({ keys: new Map() });
  expect(open()).toMatchObject({ keys: new Map(), routes });
});

test('what is confirmed is younger, without being written again', () => {
  open().keep({ keys, routes });
  const { ino } = statSync(file());
  utimesSync(file(), 1_000, 1_000);
  const known = open();
  expect(known.asOf).toBe(1_000_000);
  known.keep({ keys });
  expect(statSync(file()).mtimeMs).toBeGreaterThan(Date.now() - 60_000);
  expect(statSync(file()).ino).toBe(ino);
});

test('a damaged file counts as none, is said, and is written anew', () => {
  open().keep({ keys, routes });
  const text = readFileSync(file(), 'utf8');
  for (const damaged of [text.slice(0, -20), text.replace('"web"', '"WEB"'), '', 'x\n{}\n']) {
    writeFileSync(file(), damaged);
    said = [];
    const known = open();
    expect([known.keys.size, said.length]).toEqual([0, 1]);
    known.keep({ keys, routes });
    expect(open().keys.size).toBe(1);
  }
});

test('a folder that cannot be written costs a warning and nothing else', () => {
  const known = open();
  rmSync(home, { recursive: true });
  known.keep({ keys });
  expect([known.keys, said.length]).toEqual([keys, 1]);
});
