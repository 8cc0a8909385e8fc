/**
 * A figure of somebody else's: a Prometheus query, asked for both releases over the time of the step. Here there are no users to count,
 * only points in time. It fails where every point of the last `sustainedSeconds` is beyond the limit, and points beyond it have been so
 * many since the step began that a release which is beyond it no more often than not would hardly show that (an average of likelihood
 * ratios, as for shares). Points of one series resemble each other, so this is weaker evidence than users give; `everySeconds` keeps them apart.
 *
 * A server that is away, slow, or has no series for a release is unmeasured, and never a failure.
 */
import { z } from 'zod';
import { upTo } from '../../up-to.ts';
import { shareEvidence } from '../evidence.ts';
import type { Both, Check, End, Sides } from './check.ts';
import { words } from './check.ts';
import type { PrometheusCheck } from './declared.ts';
import { beyond, limitWords } from './signals.ts';

type Point = { readonly at: number; readonly baseline: number; readonly candidate: number };
/** null: nobody has the baseline any more, so there is nothing to compare with. */
type Measured = { readonly points: readonly Point[] } | { readonly problem: string } | null;

const timeoutMs = 5_000;
const mostBytes = 4 * 1024 * 1024;
const mostPoints = 10_000;

export const prometheus = (check: PrometheusCheck): Check<Measured> => ({
  name: check.name,
  async measure(sides) {
    if (sides.share >= 1) return null;
    try {
      const [baseline, candidate] = await Promise.all([
        asked(check, sides, 'baseline'),
        asked(check, sides, 'candidate'),
      ]);
      const points = [...candidate].flatMap(([at, value]) => {
        const other = baseline.get(at);
        return other === undefined ? [] : [{ at, baseline: other, candidate: value }];
      });
      return { points: points.sort((a, b) => a.at - b.at) };
    } catch (error) {
      return { problem: (error as Error).message.slice(0, 300) };
    }
  },
  judge(measured, _, alpha) {
    const { name, needed, sustainedSeconds, everySeconds } = check;
    if (measured === null) return [];
    const found = { name, needed };
    if ('problem' in measured)
      return [{ ...found, end: 'unmeasured', reason: `${name}: ${check.prometheus} did not say: ${measured.problem}` }];
    const { points } = measured;
    const least = Math.ceil(sustainedSeconds / everySeconds);
    if (points.length < least)
      return [
        {
          ...found,
          end: 'unmeasured',
          reason: `${name}: ${points.length} points of both releases, ${least} are needed.`,
        },
      ];
    const isBeyond = (point: Point) => beyond(point.baseline, point.candidate, check);
    const recent = points.slice(-least);
    const isSustained = recent.every(isBeyond);
    const isCertain = shareEvidence(points.filter(isBeyond).length, points.length, 0.5) >= 1 / alpha;
    const end: End = isSustained && isCertain ? 'fail' : recent.some(isBeyond) ? 'inconclusive' : 'pass';
    const last = recent.at(-1)!;
    const said = `${name}: candidate ${short(last.candidate)}, baseline ${short(last.baseline)}, beyond the limit at ${recent.filter(isBeyond).length} of the last ${least} points`;
    return [{ ...found, end, reason: `${said}; ${words(end, limitWords(check))}` }];
  },
});

const short = (value: number): string => String(Number(value.toPrecision(4)));

const answer = z.object({
  status: z.literal('success'),
  data: z.object({
    resultType: z.literal('matrix'),
    result: z.array(z.object({ values: z.array(z.tuple([z.number(), z.string()])) })).max(1000),
  }),
});

/** Values by time, all series of the answer added up. */
async function asked(
  { prometheus: url, query, everySeconds }: PrometheusCheck,
  { agent, windows }: Sides,
  side: keyof Both<unknown>,
): Promise<Map<number, number>> {
  const { release } = windows[side];
  // Both sides at the same moments: those since the candidate's step began.
  const { since, until } = windows.candidate;
  const end = Math.floor(until / 1000 / everySeconds) * everySeconds;
  const start = Math.max(Math.ceil(since / 1000 / everySeconds) * everySeconds, end - (mostPoints - 1) * everySeconds);
  if (start > end) return new Map();
  const filled = query.replaceAll('$release', release).replaceAll('$agent', agent);
  const response = await fetch(new URL('api/v1/query_range', url.endsWith('/') ? url : `${url}/`), {
    method: 'POST',
    body: new URLSearchParams({ query: filled, start: String(start), end: String(end), step: String(everySeconds) }),
    signal: AbortSignal.timeout(timeoutMs),
    redirect: 'error',
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`it answered ${response.status}`);
  }
  const sent = await upTo(mostBytes, response.body);
  if (sent === null) throw new Error(`its answer is larger than ${mostBytes} bytes`);
  const { data } = answer.parse(JSON.parse(sent.toString('utf8')));
  const values = new Map<number, number>();
  for (const { values: series } of data.result)
    for (const [at, text] of series) {
      const value = Number(text);
      if (Number.isFinite(value)) values.set(at, (values.get(at) ?? 0) + value);
    }
  return values;
}
