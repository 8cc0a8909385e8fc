import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFiles } from './files.ts';
import { openSite } from './site.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-site-'));
const put = (name: string, text: string) => {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), text);
};
put('dashboard/index.html', '<!doctype html>page');
put('dashboard/assets/index-BXqf3k2L.js', 'let a');
put('dashboard/assets/index-BXqf3k2L.js.br', 'packed');
put('docs-site/index.html', 'docs');
put('docs-site/score.html', 'score');
writeFileSync(join(folder, 'secret.txt'), 'secret');

const site = openSite(openFiles(join(folder, 'dashboard'), { deepLinks: true }), openFiles(join(folder, 'docs-site')));
const bare = openSite(openFiles(join(folder, 'nowhere'), { deepLinks: true }), openFiles(join(folder, 'nowhere')));
let url = '';
const server = createServer((request, response) => {
  const answered = (request.headers['x-bare'] ? bare : site).answer(request.url!, request, response);
  if (!answered) response.writeHead(404).end('nothing');
});
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});
const get = async (path: string, init: RequestInit = {}) => {
  const answer = await fetch(url + path, init);
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
};

test('the page and every deep link into it are the index, asked for each time, with the policy', async () => {
  for (const path of ['/', '/collect/order-4711', '/deploy/r-1', '/deploy/releases/v1.2']) {
    const { status, text, headers } = await get(path);
    expect({ path, status, text }).toEqual({ path, status: 200, text: '<!doctype html>page' });
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  }
});

test('a file with a hash in its name may be kept for good and goes packed where the browser takes that', async () => {
  const packed = await fetch(`${url}/assets/index-BXqf3k2L.js`, {
    method: 'HEAD',
    headers: { 'accept-encoding': 'br' },
  });
  expect(packed.headers.get('content-encoding')).toBe('br');
  expect(packed.headers.get('content-length')).toBe('6');
  expect(packed.headers.get('cache-control')).toContain('immutable');
  const plain = await get('/assets/index-BXqf3k2L.js', { headers: { 'accept-encoding': 'identity' } });
  expect(plain.text).toBe('let a');
});

test('what the browser has already is not sent again', async () => {
  const etag = (await get('/')).headers.get('etag')!;
  expect((await get('/', { headers: { 'if-none-match': etag } })).status).toBe(304);
});

test('no path leads out of the folder, and paths of data are never a page', async () => {
  for (const path of ['/..%2fsecret.txt', '/assets/../../secret.txt', '/%2e%2e/secret.txt', '/assets/missing.js', '/%'])
    expect((await get(path)).text, path).not.toContain('secret');
  for (const path of ['/api/nothing', '/v1/nothing', '/metrics', '/healthz', '/assets/missing.js'])
    expect(await get(path), path).toMatchObject({ status: 404, text: 'nothing' });
  expect((await get('/', { method: 'POST' })).status).toBe(404);
});

test('the documentation has pages of its own below /docs', async () => {
  expect((await get('/docs')).text).toBe('docs');
  expect((await get('/docs/score')).text).toBe('score');
  expect((await get('/docs/nothing')).status).toBe(404);
});

test('where nothing was built a plain page says how to', async () => {
  const headers = { 'x-bare': '1' };
  expect((await get('/', { headers })).text).toContain('npm run build');
  expect((await get('/docs', { headers })).text).toContain('npm run build');
  expect((await get('/assets/a.js', { headers })).text).toBe('nothing');
});
