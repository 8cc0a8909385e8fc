/**
 * A process to be killed: the turn of the tiny world on the database at argv[2] in the folder at argv[3], until it ends. Says
 * each step of each stage, and waits a little after it, so that a kill lands in the middle.
 */
import { createOnnxEngine } from '../../src/engine/onnx/engine.ts';
import { connectStore } from '../../src/store/postgres.ts';
import { turnOnce } from './turn.ts';

const store = await connectStore(process.argv[2]!);
const engine = createOnnxEngine({ threads: 1 });
const counts: Record<string, number> = {};
const progress = (stage: string) => {
  counts[stage] = (counts[stage] ?? 0) + 1;
  process.stdout.write(`${stage} ${counts[stage]}\n`);
};
await turnOnce(store, process.argv[3]!, engine, { say: { progress, done: (stage) => progress(`${stage} done`) } });
await engine.close();
await store.close();
