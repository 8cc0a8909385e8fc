import { describe, expect, it } from 'vitest';
import { callHeaders, passedHeaders, returnedHeaders } from './headers.ts';

const pairs = (list: string[]) =>
  Object.fromEntries(Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i]!, list[2 * i + 1]!]));

const given = {
  host: 'pawl',
  connection: 'keep-alive, X-Secret , te',
  te: 'trailers',
  'keep-alive': 'timeout=5',
  'proxy-authorization': 'Basic eA==',
  'x-secret': '1',
  authorization: 'Bearer pawl_x',
  'x-api-key': 'pawl_x',
  cookie: 'a=b',
  'x-pawl-user': 'ann',
  'content-encoding': 'gzip',
  'accept-encoding': 'br',
  'content-length': '12',
  'transfer-encoding': 'chunked',
  'anthropic-version': '2023-06-01',
  'x-request-id': 'r1',
};

describe('headers', () => {
  it('of a connection, of credentials and of Pawl do not reach the upstream', () => {
    expect(pairs(callHeaders(given, '/chat/completions', 'up'))).toEqual({
      'anthropic-version': '2023-06-01',
      'x-request-id': 'r1',
      'accept-encoding': 'identity',
      authorization: 'Bearer up',
    });
  });

  it('below /messages carry the upstream’s key the way Anthropic’s servers want it too', () => {
    expect(pairs(callHeaders({}, '/messages', 'up'))).toMatchObject({ 'x-api-key': 'up', authorization: 'Bearer up' });
    expect(pairs(callHeaders({}, '/messages', undefined))).toEqual({ 'accept-encoding': 'identity' });
  });

  it('of a body that passes untouched say how long and how coded it is', () => {
    expect(pairs(passedHeaders(given, '/files', undefined))).toEqual({
      'content-encoding': 'gzip',
      'accept-encoding': 'br',
      'content-length': '12',
      'anthropic-version': '2023-06-01',
      'x-request-id': 'r1',
    });
  });

  it('of the upstream’s connection do not reach the caller, nor do words in Pawl’s name', () => {
    const answer = {
      connection: 'close, x-hop',
      'x-hop': '1',
      'transfer-encoding': 'chunked',
      'proxy-authenticate': 'Basic',
      'x-pawl-trajectory': 'forged',
      'content-type': 'text/plain',
      'set-cookie': ['a', 'b'],
    };
    expect(returnedHeaders(answer, { 'x-pawl-turn': 't' })).toEqual([
      ...['content-type', 'text/plain'],
      ...['set-cookie', ['a', 'b']],
      ...['x-pawl-turn', 't'],
    ]);
    expect(returnedHeaders(answer, {}, ['content-type'])).toEqual(['set-cookie', ['a', 'b']]);
  });
});
