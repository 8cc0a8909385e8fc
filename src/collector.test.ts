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
