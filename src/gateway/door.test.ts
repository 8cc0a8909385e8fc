import { describe, expect, it } from 'vitest';
import { RequestError } from '../errors.ts';
import { checkCall, depthOf, identify, parseBody, parsePath } from './door.ts';

const bytes = (text: string) => Buffer.from(text);
const refusal = (run: () => unknown): RequestError => {
  try {
    run();
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
};

describe('parsePath', () => {
  it('reads trajectory and user from the path, in either order', () => {
    expect(parsePath('/v1/chat/completions?x=1')).toEqual({
      route: '/chat/completions',
      query: '?x=1',
      trajectory: null,
      user: null,
    });
    expect(parsePath('/t/case-7/v1/embeddings')).toEqual({
      route: '/embeddings',
      query: '',
      trajectory: 'case-7',
      user: null,
    });
    expect(parsePath('/u/ann/t/case-7/v1/models')).toEqual({
      route: '/models',
      query: '',
      trajectory: 'case-7',
      user: 'ann',
    });
    expect(parsePath('/t/a/u/b%40c/v1/models')).toEqual({ route: '/models', query: '', trajectory: 'a', user: 'b@c' });
  });

  it('leaves paths that are not the gateway’s alone', () => {
    for (const path of ['/', '/api/status', '/healthz', '/t/a/v2/x', '/version']) expect(parsePath(path)).toBeNull();
  });

  it('refuses ids that could be addresses, paths or broken escapes', () => {
    expect(refusal(() => parsePath('/t/a%2Fb/v1/models')).code).toBe('invalid_trajectory_id');
    expect(refusal(() => parsePath('/t/ann@example.com/v1/models')).code).toBe('invalid_trajectory_id');
    expect(refusal(() => parsePath(`/t/${'a'.repeat(129)}/v1/models`)).code).toBe('invalid_trajectory_id');
    expect(refusal(() => parsePath('/t/%E0%A4%A/v1/models')).code).toBe('invalid_path');
    expect(refusal(() => parsePath('/u//v1/models')).code).toBe('invalid_user');
  });
});

describe('identify', () => {
  const path = { route: '/chat/completions', query: '', trajectory: null, user: null };

  it('prefers the path to a header and a header to the body', () => {
    const headers = { 'x-pawl-trajectory': 'from-header', 'x-pawl-user': 'header-user' };
    expect(identify({ ...path, trajectory: 'from-path', user: 'path-user' }, headers, { user: 'u' })).toMatchObject({
      trajectory: 'from-path',
      user: 'path-user',
    });
    expect(identify(path, headers, { user: 'u' })).toMatchObject({ trajectory: 'from-header', user: 'header-user' });
    expect(identify(path, {}, { user: 'u' })).toMatchObject({ trajectory: null, user: 'u' });
    expect(identify(path, {}, { safety_identifier: 's' })).toMatchObject({ user: 's' });
  });

  it('reads business keys and refuses too many', () => {
    expect(identify(path, { 'x-pawl-key': 'order:1, ticket:9' }, {}).keys).toEqual(['order:1', 'ticket:9']);
    expect(refusal(() => identify(path, { 'x-pawl-key': Array(17).fill('k').join(',') }, {})).status).toBe(400);
    expect(refusal(() => identify(path, {}, { user: 7 })).code).toBe('invalid_user');
  });
});

describe('parseBody', () => {
  it('gives the object', () => expect(parseBody(bytes('{"model":"m","n":2}'))).toEqual({ model: 'm', n: 2 }));

  it.each([
    ['', 'empty_body'],
    ['{"a":', 'invalid_json'],
    ['[1]', 'invalid_body'],
    ['null', 'invalid_body'],
    [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, 'too_deep'],
    ['{"a":{"__proto__":{"polluted":true}}}', 'forbidden_key'],
    ['{"a":[{"\\u005f_proto__":1}]}', 'forbidden_key'],
  ])('refuses %j', (body, code) => expect(refusal(() => parseBody(bytes(body))).code).toBe(code));

  it('refuses bytes that are not UTF-8', () => {
    const broken = Buffer.concat([bytes('{"a":"'), Buffer.from([0xc3, 0x28]), bytes('"}')]);
    expect(refusal(() => parseBody(broken)).code).toBe('invalid_utf8');
  });

  it('lets text talk about __proto__', () => {
    expect(parseBody(bytes('{"content":"__proto__ is a key"}'))).toEqual({ content: '__proto__ is a key' });
    expect(({} as { polluted?: true }).polluted).toBeUndefined();
  });

  it('counts depth outside strings only', () => {
    expect(depthOf(bytes('{"a":[{"b":"[[[[\\"[[["}]}'))).toBe(3);
    expect(depthOf(bytes('"unfinished [['))).toBe(0);
    // A string ends at a quote after an even number of backslashes, near its start or far from it.
    for (const text of ['', 'x'.repeat(14), 'x'.repeat(15), 'x'.repeat(16), 'x'.repeat(100)]) {
      expect(depthOf(bytes(`{"${text}\\\\":[[]]}`))).toBe(3);
      expect(depthOf(bytes(`{"${text}\\\\\\"[[[["}`))).toBe(1);
      expect(depthOf(bytes(`{"${text}\\"[[[["}`))).toBe(1);
    }
  });

  it('survives a million brackets', () => {
    expect(refusal(() => parseBody(bytes('['.repeat(1_000_000)))).code).toBe('too_deep');
  });
});

describe('checkCall', () => {
  it('wants a model, and messages for chat', () => {
    expect(refusal(() => checkCall('chat', { messages: [] })).code).toBe('invalid_model');
    expect(refusal(() => checkCall('chat', { model: 'm' })).code).toBe('invalid_messages');
    expect(() => checkCall('embeddings', { model: 'm', input: 'x' })).not.toThrow();
  });

  it('refuses 10,000 messages and says how many are accepted', () => {
    const refused = refusal(() => checkCall('chat', { model: 'm', messages: Array(10_000).fill({}) }));
    expect(refused.status).toBe(400);
    expect(refused.message).toContain('10000');
    expect(refused.message).toContain('4096');
  });
});
