import { expect, it } from 'vitest';
import { type Exchange, packRow, unpackRow } from './exchange.ts';

/** Every field, the optional ones too: a new field does not compile here until it is added. */
const whole: Required<Exchange> = {
  id: '01890000-0000-7000-8000-000000000000',
  trajectory: 't-1',
  agent: 'desk',
  user: 'ann',
  origin: 'production',
  keys: ['order:1', 'order:2'],
  endpoint: 'chat',
  startedAt: 1000,
  firstTokenMs: 5,
  latencyMs: 9,
  upstream: 'main',
  release: 'main/echo',
  assigned: 'desk-2',
  requestedModel: 'echo',
  status: 'truncated',
  httpStatus: 200,
  error: 'broke off',
  attempts: 2,
  stream: true,
  requestBody: new Uint8Array([1, 2, 3]),
  responseChunks: [new Uint8Array([4, 5])],
  responseTruncated: true,
  sibling: { parent: '01890000-0000-7000-8000-000000000001', temperature: 0.7, topP: null },
  clientKey: '01890000-0000-4000-8000-000000000002',
  isUnderstood: true,
};

const across = (exchange: Exchange): Exchange =>
  unpackRow(JSON.parse(JSON.stringify(packRow(exchange, 2))), new Uint8Array([9, 1, 2, 3, 4, 5, 9]).buffer, 1);

it('an exchange crosses to the worker whole, with its own bytes', () => {
  expect(across(whole)).toEqual(whole);
});

it('what an exchange does not have it comes out without', () => {
  const { assigned: _, sibling: __, clientKey: ___, isUnderstood: ____, ...plain } = whole;
  expect(across(plain)).toEqual(plain);
});
