import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { untar } from './archive.ts';

function entry(name: string, bytes: Buffer, size = bytes.length, type = '0'): Buffer {
  const head = Buffer.alloc(512);
  head.write(name, 0);
  head.write(size.toString(8).padStart(11, '0'), 124);
  head.write(type, 156);
  return Buffer.concat([head, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

test('files are read from an archive, gzipped or not, whatever folder they lie in', () => {
  const tar = Buffer.concat([
    entry('./', Buffer.alloc(0), 0, '5'),
    entry('a/b/x.json', Buffer.from('{}')),
    Buffer.alloc(1024),
  ]);
  for (const bytes of [tar, gzipSync(tar)]) expect([...untar(bytes)]).toEqual([['x.json', Buffer.from('{}')]]);
});

test('an archive whose checksum is wrong is refused in words', () => {
  const bytes = gzipSync(entry('x', Buffer.from('ab')));
  bytes.subarray(-8).fill(7);
  expect(() => untar(bytes)).toThrow('The archive is damaged: incorrect data check.');
});

test('an archive that claims more than it holds is refused', () => {
  expect(() => untar(entry('x', Buffer.from('ab'), 10_000_000))).toThrow(/damaged/);
});
