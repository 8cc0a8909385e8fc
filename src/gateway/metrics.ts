/**
 * What Prometheus reads at /metrics. Requests are counted as they end; what the recorder knows is asked for at the time
 * of reading. A label's values are bounded: beyond a few hundred releases, or names of signals, the rest is counted as
 * `other`, each label on its own.
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { RecorderStats } from '../collect/recorder.ts';
import type { TurnStatus } from '../collect/turn.ts';
import { createCallFigures } from './call-figures.ts';
import type { Refusal } from './explore.ts';

const maxValues = 200;
/** Milliseconds, longer than any process lives. */
const never = 2 ** 40;

export type Metrics = {
  readonly registry: Registry;
  requestEnded(r: {
    agent: string;
    release: string;
    endpoint: string;
    status: TurnStatus;
    seconds: number;
    firstByteSeconds: number | null;
    attempts: number;
  }): void;
  /** A request that never became a call: bad input, bad key, over the limit. */
  requestRefused(code: string): void;
  signalReceived(agent: string, kind: string, name: string): void;
  explorationAsked(agent: string): void;
  explorationAnswered(agent: string): void;
  explorationFailed(agent: string): void;
  explorationRefused(agent: string, reason: Refusal): void;
  explorationSpent(agent: string, money: number): void;
  /** A shadow call, and whether the candidate did as the baseline had done. */
  shadowAsked(agent: string, ended: 'agreed' | 'differed' | 'failed'): void;
  /** Asked at the time of reading. */
  holds(read: () => Held): void;
};

/** What the gateway holds: requests let in and not done, and bytes of bodies and copies of answers. */
type Held = { readonly requests: number; readonly bytes: number };

/** The value, or `other` once there are too many. */
function bounded(): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= maxValues) return 'other';
    known.add(value);
    return value;
  };
}

/** Node's own, without what is sampled a hundred times a second: that would be most of what an idle gateway does. */
function processMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: never });
  for (const of of ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'])
    registry.removeSingleMetric(`nodejs_eventloop_lag_${of}_seconds`);
  let last = performance.eventLoopUtilization();
  new Gauge({
    name: 'nodejs_eventloop_utilization',
    help: 'Share of the time since the last reading in which the event loop was busy',
    registers: [registry],
    collect() {
      const now = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(now, last).utilization);
      last = now;
    },
  });
}

export function createMetrics(recorder: () => RecorderStats, linesLost: () => number = () => 0): Metrics {
  const registry = new Registry();
  const registers = [registry];
  processMetrics(registry);
  const releaseLabel = bounded();
  const signalLabel = bounded();

  const calls = createCallFigures(registry);
  const errors = new Counter({
    name: 'pawl_request_errors_total',
    help: 'Those that did not end well',
    labelNames: ['agent', 'release', 'status'],
    registers,
  });
  const refused = new Counter({
    name: 'pawl_requests_refused_total',
    help: 'Requests turned away at the door',
    labelNames: ['code'],
    registers,
  });
  const retries = new Counter({
    name: 'pawl_upstream_retries_total',
    help: 'Upstream calls beyond the first of a request',
    labelNames: ['agent', 'release'],
    registers,
  });
  const signals = new Counter({
    name: 'pawl_signals_total',
    help: 'Feedback, outcomes and user events received',
    labelNames: ['agent', 'kind', 'name'],
    registers,
  });
  const exploration = (name: string, help: string, ...labels: 'reason'[]) =>
    new Counter({ name: `pawl_exploration_${name}_total`, help, labelNames: ['agent', ...labels], registers });
  const asked = exploration('asked', 'Further answers asked for after users had theirs');
  const answered = exploration('answered', 'Those that came and are recorded as siblings');
  const failed = exploration('failed', 'Those that did not come');
  const notExplored = exploration('refused', 'Requests drawn for exploration and left out by a limit', 'reason');
  const spent = exploration('money', 'What further answers cost by the configured price');
  const shadowed = new Counter({
    name: 'pawl_shadow_calls_total',
    help: 'Candidates asked what users had asked, by whether they did as the baseline had done',
    labelNames: ['agent', 'ended'],
    registers,
  });
  let held = (): Held => ({ requests: 0, bytes: 0 });
  const heldGauge = (name: string, help: string, read: (now: Held) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(held()));
      },
    });
  heldGauge('pawl_requests_in_flight', 'Requests being read or answered now', ({ requests }) => requests);
  heldGauge('pawl_memory_bytes', 'Request bodies and copies of answers in memory now', ({ bytes }) => bytes);
  /** What somebody else counts. */
  const counted = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  counted('pawl_log_lines_lost_total', 'Log lines that could not be written', linesLost);

  const gauge = (name: string, help: string, read: (stats: RecorderStats) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(recorder()));
      },
    });
  gauge('pawl_record_queue_depth', 'Exchanges waiting to be journalled', (s) => s.queueDepth);
  gauge('pawl_record_queue_bytes', 'Bytes waiting to be journalled', (s) => s.queueBytes);
  gauge('pawl_journal_bytes', 'Bytes in the journal on disk', (s) => s.journalBytes);
  gauge('pawl_record_lag_seconds', 'Age of the oldest entry the database does not have yet', (s) => s.sinkLagMs / 1000);
  gauge('pawl_record_database_up', '1 while the database takes entries', (s) => (s.sinkUp ? 1 : 0));
  gauge('pawl_record_disk_ok', '1 while the journal can be written', (s) => (s.diskOk ? 1 : 0));
  counted('pawl_recorded_total', 'Entries written to the database', () => recorder().recorded);
  counted('pawl_journalled_total', 'Entries made durable in the journal', () => recorder().journalled);
  new Counter({
    name: 'pawl_record_dropped_total',
    help: 'Exchanges that could not be recorded',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(recorder().dropped)) this.inc({ reason }, count);
    },
  });

  return {
    registry,
    holds(read) {
      held = read;
    },
    requestEnded({ agent, release: raw, endpoint, status, seconds, firstByteSeconds, attempts }) {
      const release = releaseLabel(raw);
      calls.ended({ agent, release, endpoint, status, seconds, firstByteSeconds });
      if (status !== 'ok') errors.inc({ agent, release, status });
      if (attempts > 1) retries.inc({ agent, release }, attempts - 1);
    },
    requestRefused: (code) => refused.inc({ code }),
    explorationAsked: (agent) => asked.inc({ agent }),
    explorationAnswered: (agent) => answered.inc({ agent }),
    explorationFailed: (agent) => failed.inc({ agent }),
    explorationRefused: (agent, reason) => notExplored.inc({ agent, reason }),
    shadowAsked: (agent, ended) => shadowed.inc({ agent, ended }),
    explorationSpent: (agent, money) => spent.inc({ agent }, money),
    signalReceived: (agent, kind, name) => signals.inc({ agent, kind, name: signalLabel(name) }),
  };
}
