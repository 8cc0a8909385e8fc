/**
 * Prometheus' own tool reads the alert rules, tries them on good and bad traffic (monitoring-rules.yml), and reads what /metrics says. It comes
 * with Prometheus, in Debian as the package `prometheus`; `PROMTOOL` names it where it is not on the path.
 */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { noCounts } from '../src/collect/recorder.ts';
import { createMetrics } from '../src/gateway/metrics.ts';

const promtool = process.env.PROMTOOL ?? 'promtool';
const isThere = spawnSync(promtool, ['--version']).status === 0;
const run = (args: readonly string[], input?: string) => {
  const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8', ...(input && { input }) });
  return { status, said: `${stdout}${stderr}` };
};

describe.skipIf(!isThere)(
  `promtool${isThere ? '' : ` (left out: there is no ${promtool}; it comes with prometheus)`}`,
  () => {
    it('finds nothing wrong with docs/monitoring/rules.yml', () => {
      const { status, said } = run(['check', 'rules', 'docs/monitoring/rules.yml']);
      expect(said).toMatch(/SUCCESS: 9 rules found/);
      expect(status).toBe(0);
    });

    it('sees each alert fire on traffic that is bad, about whom it should, and on no other', () => {
      expect(run(['test', 'rules', 'test/monitoring-rules.yml'])).toEqual({
        status: 0,
        said: expect.stringContaining('SUCCESS'),
      });
    });

    it('finds nothing wrong with what /metrics says', async () => {
      const metrics = createMetrics(() => ({ ...noCounts(), queueDepth: 0, queueBytes: 0, restarts: 0 }));
      const ended = { agent: 'desk', release: 'v1', endpoint: 'chat', seconds: 1, firstByteSeconds: 0.1 };
      metrics.requestEnded({ ...ended, status: 'ok', attempts: 1 });
      metrics.requestEnded({ ...ended, status: 'error', attempts: 2 });
      metrics.requestRefused('bad_key');
      metrics.shadowAsked('desk', 'agreed');
      metrics.signalReceived('desk', 'feedback', 'vote');
      metrics.explorationSpent('desk', 0.5);
      const { said } = run(['check', 'metrics'], await metrics.registry.metrics());
      // Node's own figures come from prom-client, under names that promtool does not like.
      expect(said.split('\n').filter((line) => !line.startsWith('nodejs_'))).toEqual(['']);
    });
  },
);
