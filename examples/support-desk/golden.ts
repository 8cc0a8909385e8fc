/**
 * The golden set: 150 cases that nothing is ever trained on, in golden.jsonl beside this file. It was made from a seed by
 *   node --import tsx examples/support-desk/golden.ts
 * and a test keeps it so: change a template and the file has to be written again, knowingly.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { makeTask, parseTask, type Task } from 'pawl';
import { supportDesk } from './desk.ts';
import { type DeskData, deskTypes } from './tasks.ts';

export const goldenFile = new URL('golden.jsonl', import.meta.url);
const size = 150;
const firstSeed = 7000;

/** The types take turns; a case whose words or order came up before is passed over. */
export function makeGolden(): Task<DeskData>[] {
  const types = Object.keys(deskTypes);
  const seen = new Set<string>();
  const next = new Map(types.map((type) => [type, firstSeed]));
  return Array.from({ length: size }, (_, i) => {
    const type = types[i % types.length]!;
    for (;;) {
      const seed = next.get(type)!;
      next.set(type, seed + 1);
      const task = makeTask(supportDesk, type, 'golden', seed);
      const marks = [`order ${task.data.order ?? task.id}`, `${task.data.opening} ${task.data.number}`];
      if (marks.some((mark) => seen.has(mark))) continue;
      for (const mark of marks) seen.add(mark);
      return task;
    }
  });
}

export const goldenText = (tasks: readonly Task<DeskData>[]): string =>
  tasks.map((task) => `${JSON.stringify(task)}\n`).join('');

export function readGolden(): Task<DeskData>[] {
  const lines = readFileSync(goldenFile, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => parseTask(supportDesk, JSON.parse(line)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) writeFileSync(goldenFile, goldenText(makeGolden()));
