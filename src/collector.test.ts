import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

// Not in this process: what V8 does not survive ends it.
const program = `
  import { Worker } from 'node:worker_threads';
  const { collectAlone } = await import(${JSON.stringify(new URL('./collector.ts', import.meta.url).href)});
  collectAlone();
  const code = \`
    const kept = new Map();
    for (let i = 0; i < 600_000; i++)
      kept.set(i % 50_000, { i, text: 'x' + i, bytes: i % 50 === 0 ? new Uint8Array(2000) : null });
  \`;
  const worker = new Worker(code, { eval: true });
  new Function(code)();
  worker.on('exit', (status) => console.log('collected', status));
`;

test('both heaps are collected after the change: V8 ends the process over some of its flags', () => {
  const flags = ['--trace-gc', '--import', 'tsx', '--input-type=module', '--eval', program];
  const output = execFileSync(process.execPath, flags, { encoding: 'utf8' });
  expect(output).toContain('collected 0');
  expect(output).toContain('Mark-Compact');
});

const bodies = `
  const { openClearing } = await import(${JSON.stringify(new URL('./collector.ts', import.meta.url).href)});
  const megabyte = 1024 * 1024;
  const held = () => Math.round(process.memoryUsage().arrayBuffers / megabyte);
  const letGo = openClearing(16 * megabyte);
  const made = (bytes) => new Uint8Array(bytes).length;
  const steps = [held()];
  for (const count of [15, 1]) {
    for (let i = 0; i < count; i++) letGo(made(megabyte));
    await new Promise((resolve) => setTimeout(resolve, 1));
    steps.push(held());
  }
  console.log(JSON.stringify([steps, typeof gc]));
`;

test('what was let go of is given back at sixteen megabytes, and no program gets a way to collect by itself', () => {
  const output = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', bodies], {
    encoding: 'utf8',
  });
  expect(JSON.parse(output)).toEqual([[0, 15, 0], 'undefined']);
});
