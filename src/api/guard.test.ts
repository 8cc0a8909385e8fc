import { expect, test } from 'vitest';
import { exposure, refuseHost, refuseOrigin } from './guard.ts';

test('addresses and localhost mean this machine; a name that merely points at it does not', () => {
  for (const host of ['localhost:4700', '127.0.0.1', '[::1]:4700', '192.168.1.5:80', 'pawl.localhost'])
    expect(refuseHost(host, []), host).toBeNull();
  for (const host of ['evil.example:4700', 'localhost.evil.example', undefined, 'a b', ''])
    expect(refuseHost(host, []), String(host)).not.toBeNull();
});

test('names the owner listed are accepted, and a star accepts all', () => {
  expect(refuseHost('Pawl.Example.com', ['pawl.example.com'])).toBeNull();
  expect(refuseHost('pawl.example.com', ['other.example.com'])).not.toBeNull();
  expect(refuseHost('pawl.example.com', ['*'])).toBeNull();
});

test('a page of the same host and port may ask, a page of another may not', () => {
  expect(refuseOrigin('http://localhost:4700', 'same-origin', 'localhost:4700')).toBeNull();
  expect(refuseOrigin('https://pawl.example.com', undefined, 'pawl.example.com')).toBeNull();
  expect(refuseOrigin(undefined, 'none', 'localhost:4700')).toBeNull();
  for (const origin of ['http://localhost:3000', 'https://evil.example', 'null', 'nonsense'])
    expect(refuseOrigin(origin, undefined, 'localhost:4700'), origin).not.toBeNull();
  expect(refuseOrigin(undefined, 'cross-site', 'localhost:4700')).not.toBeNull();
});

test('a server that others can reach says so at its start', () => {
  for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost', 'a.localhost']) expect(exposure(host)).toBeNull();
  for (const host of ['0.0.0.0', '::', '10.0.0.5', 'pawl.example', '127.evil.example'])
    expect(exposure(host), host).toContain(host);
});
