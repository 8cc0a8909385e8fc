/**
 * Whether two folders hold the same model: a base may be a copy of the one that the settings name, for the artifact store keeps things by
 * their content. The same config and tokenizer are not enough, since a model that was trained further has those too; so weights
 * are compared, byte by byte, where both folders have them.
 */
import { open, readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readOneVersion } from '../atomic-folder.ts';

/** What a model is, besides weights. */
const identity = ['config.json', 'tokenizer.json'];
const isWeights = (name: string) => name.endsWith('.safetensors') && name !== 'optimizer.safetensors';

export async function isSameModel(one: string, other: string): Promise<boolean> {
  if (resolve(one) === resolve(other)) return true;
  return readOneVersion(resolve(one), (a) =>
    readOneVersion(resolve(other), async (b) => {
      const [inA, inB] = [await readdir(a), await readdir(b)];
      if (inA.includes('adapter_config.json') || inB.includes('adapter_config.json')) return false;
      const [weightsA, weightsB] = [inA.filter(isWeights).sort(), inB.filter(isWeights).sort()];
      const both = weightsA.length > 0 && weightsB.length > 0;
      if (both && String(weightsA) !== String(weightsB)) return false;
      for (const name of [...identity, ...(both ? weightsA : [])]) {
        if (inA.includes(name) !== inB.includes(name)) return false;
        if (inA.includes(name) && !(await isSameFile(join(a, name), join(b, name)))) return false;
      }
      return inA.includes('config.json');
    }),
  );
}

async function isSameFile(a: string, b: string): Promise<boolean> {
  const [one, other] = [await stat(a, { bigint: true }), await stat(b, { bigint: true })];
  if (one.dev === other.dev && one.ino === other.ino) return true;
  if (one.size !== other.size) return false;
  const [left, right] = [await open(a, 'r'), await open(b, 'r')];
  try {
    const [x, y] = [Buffer.alloc(2 ** 20), Buffer.alloc(2 ** 20)];
    for (;;) {
      const [{ bytesRead: n }, { bytesRead: m }] = [await left.read(x), await right.read(y)];
      if (n !== m || x.compare(y, 0, m, 0, n) !== 0) return false;
      if (n === 0) return true;
    }
  } finally {
    await left.close();
    await right.close();
  }
}
