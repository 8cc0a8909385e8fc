/** Looks at a database without changing it: no migration is run, nothing is made. For `pawl doctor`. */
import pg from 'pg';
import type { Applied } from './migrate.ts';
import { listProcesses, type ProcessRecord } from './processes.ts';

export type Diagnosis = {
  /** E.g. 18. */
  readonly serverVersion: number;
  readonly answeredInMs: number;
  /** How far the database's clock is ahead of ours. */
  readonly aheadMs: number;
  readonly applied: readonly Applied[];
  /** What could not be recorded, the largest first. */
  readonly losses: readonly { readonly reason: string; readonly count: number }[];
  /** All that work on it, of the last hour. */
  readonly processes: readonly ProcessRecord[];
  /** What is done now and then and failed last time. */
  readonly failedJobs: readonly { readonly name: string; readonly problem: string }[];
  /** The latest check of each agent's reward against labels. */
  readonly rewards: readonly { readonly agent: string; readonly result: unknown }[];
};

/** Throws what the database or the way to it says. */
export async function diagnoseDatabase(url: string): Promise<Diagnosis> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000, query_timeout: 10_000 });
  client.on('error', () => {});
  try {
    const before = performance.now();
    const asked = Date.now();
    await client.connect();
    const answer = await client.query<{ number: string; now: Date; there: boolean; listed: boolean; checked: boolean }>(
      `select current_setting('server_version_num') as number, clock_timestamp() as now,
              to_regclass('pawl.migrations') is not null as there, to_regclass('pawl.processes') is not null as listed,
              to_regclass('pawl.reward_checks') is not null as checked`,
    );
    const answeredInMs = performance.now() - before;
    const { number, now, there, listed, checked } = answer.rows[0]!;
    const rows = async <T extends pg.QueryResultRow>(sql: string) => (there ? (await client.query<T>(sql)).rows : []);
    return {
      serverVersion: Math.floor(Number(number) / 10_000),
      answeredInMs,
      aheadMs: now.getTime() - (asked + answeredInMs),
      applied: await rows<Applied>('select name, checksum from pawl.migrations'),
      losses: await rows<Diagnosis['losses'][number]>(
        'select reason, sum(count)::float8 as count from pawl.losses group by reason order by 2 desc limit 5',
      ),
      processes: listed ? await listProcesses(client) : [],
      failedJobs: listed
        ? await rows<Diagnosis['failedJobs'][number]>('select name, problem from pawl.jobs where problem is not null')
        : [],
      rewards: checked
        ? await rows<Diagnosis['rewards'][number]>(
            'select distinct on (agent) agent, result from pawl.reward_checks order by agent, at desc',
          )
        : [],
    };
  } finally {
    await client.end().catch(() => {});
  }
}
