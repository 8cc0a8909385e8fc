import { expect, it } from 'vitest';
import { parseConfig } from '../config.ts';

const artifacts = (given: unknown, env = {}) => parseConfig({ artifacts: given }, env, '/srv').artifacts;

it('a place is a folder beside the settings, a bucket, or its parts; the environment is above the file', () => {
  expect(artifacts(undefined)).toBe('/srv/.pawl/artifacts');
  expect(artifacts('shared')).toBe('/srv/shared');
  expect(artifacts('s3://our-bucket')).toEqual({ bucket: 'our-bucket', prefix: '' });
  expect(artifacts('s3://our-bucket//a/b/')).toEqual({ bucket: 'our-bucket', prefix: 'a/b' });
  expect(artifacts({ bucket: 'our-bucket', prefix: '/a', endpoint: 'http://127.0.0.1:9000' })).toEqual({
    ...{ bucket: 'our-bucket', prefix: 'a', endpoint: 'http://127.0.0.1:9000' },
  });
  expect(artifacts('shared', { PAWL_ARTIFACTS: 's3://our-bucket/x' })).toEqual({ bucket: 'our-bucket', prefix: 'x' });
});

it('says what is wrong with a place', () => {
  expect(() => artifacts('s3://B')).toThrow(/artifacts: a bucket has 3 to 63/);
  expect(() => artifacts('s3://our-bucket/../x')).toThrow(/without \. and \.\. as names/);
  expect(() => artifacts('gs://our-bucket')).toThrow(/a folder, or s3:\/\/bucket\/prefix/);
  expect(() => artifacts({ bucket: 'our-bucket', colour: 'red' })).toThrow(/colour/);
  expect(() => artifacts(7)).toThrow(/a folder, s3:\/\/bucket\/prefix, or \{ bucket/);
  expect(() => artifacts(undefined, { PAWL_ARTIFACTS: 's3://x' })).toThrow(/PAWL_ARTIFACTS=s3:\/\/x: a bucket has/);
});
