import { expect, it } from 'vitest';
import { noCounts } from '../collect/recorder.ts';
import { createMetrics } from './metrics.ts';

const ended = { agent: 'desk', endpoint: 'chat', status: 'ok', seconds: 1, firstByteSeconds: 1, attempts: 1 } as const;
const stats = { ...noCounts(), queueDepth: 0, queueBytes: 0, restarts: 0 };

it('names of outcomes do not use up the room for releases', async () => {
  const metrics = createMetrics(
    () => stats,
    () => 7,
  );
  for (let i = 0; i < 300; i++) metrics.signalReceived('desk', 'outcome', `outcome-${i}`);
  metrics.requestEnded({ ...ended, release: 'desk-1' });
  metrics.holds(() => ({ requests: 3, bytes: 1000 }));
  const text = await metrics.registry.metrics();
  expect(text).toContain('pawl_requests_total{agent="desk",release="desk-1",endpoint="chat",status="ok"} 1');
  expect(text).toContain('pawl_signals_total{agent="desk",kind="outcome",name="other"} 100');
  expect(text).toContain('pawl_requests_in_flight 3');
  expect(text).toContain('pawl_memory_bytes 1000');
  expect(text).toContain('pawl_log_lines_lost_total 7');
});
