/** Prometheus' own tool reads the alert rules. It comes with Prometheus, in Debian as the package `prometheus`. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const isThere = spawnSync('promtool', ['--version']).status === 0;

it.skipIf(!isThere)('promtool finds nothing wrong with docs/monitoring/rules.yml', () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', 'docs/monitoring/rules.yml']);
  expect(`${stdout}${stderr}`).toMatch(/SUCCESS: 9 rules found/);
  expect(status).toBe(0);
});
