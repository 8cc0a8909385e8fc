import { describe, expect, it } from 'vitest';
import { withFields, withModel } from './rewrite.ts';

const rewrite = (text: string, model: string) => withModel(Buffer.from(text), JSON.parse(text), model).toString();

describe('another model name', () => {
  it('changes the name and no other byte', () => {
    const body =
      '{ "seed": 12345678901234567890,\n "model" :"desk", "temperature":1.0,"messages":[{"role":"user","content":"né 你好"}]}';
    expect(rewrite(body, 'desk-7')).toBe(body.replace('"desk"', '"desk-7"'));
  });

  it('leaves models alone that are not the request’s', () => {
    const body =
      '{"messages":[{"model":"desk","content":"\\"model\\":\\"desk\\""}],"metadata":{"model":"desk"},"x":"model","model":"desk"}';
    expect(rewrite(body, 'm')).toBe(`${body.slice(0, -7)}"m"}`);
  });

  it('reaches every spelling that a server might read', () => {
    expect(JSON.parse(rewrite('{"\\u006dodel":"desk"}', 'm'))).toEqual({ model: 'm' });
    expect(rewrite('{"model":"a","n":1,"model":"desk"}', 'm')).toBe('{"model":"m","n":1,"model":"m"}');
    expect(rewrite('{"model":7,"k":"desk","model":"desk"}', 'm')).toBe('{"model":7,"k":"desk","model":"m"}');
    expect(rewrite('{"k\\"":1,"model":"desk"}', 'm')).toBe('{"k\\"":1,"model":"m"}');
  });

  it('is not misled by backslashes before a quote', () => {
    const body = '{"a":"x\\\\","b":"\\\\\\"","model":"desk","c":"\\""}';
    expect(JSON.parse(body)).toEqual({ a: 'x\\', b: '\\"', model: 'desk', c: '"' });
    expect(rewrite(body, 'm')).toBe(body.replace('desk', 'm'));
  });

  it('quotes what it writes', () => {
    expect(rewrite('{"model":"desk"}', 'a"b')).toBe('{"model":"a\\"b"}');
  });
});

describe('added fields', () => {
  it('are added only where the caller has not set them, before what the caller wrote', () => {
    const text = ' {"model":"m","temperature":0}';
    const bytes = Buffer.from(text);
    expect(withFields(bytes, JSON.parse(text), { temperature: 1, top_p: 0.9 }).toString()).toBe(
      ' {"top_p":0.9,"model":"m","temperature":0}',
    );
    expect(withFields(bytes, JSON.parse(text), { temperature: 1 })).toBe(bytes);
  });
});
