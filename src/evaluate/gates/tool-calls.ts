/** Tool-call inflation: more calls for the same result, or the same call again and again. A reward for "uses tools" pays for both. */
import { fewestCases, type Gate, type GatedAttempt, type GatedCase, lookAt, percent, unmeasured } from './gate.ts';
import { atEqualSuccess, isRise, rise } from './paired.ts';

const name = 'tool-calls';
/** Of a call: fewer, and it is noise of a model that hardly calls any. */
const leastMore = 0.25;
const repeatedRise = 0.2;

const callsOf = ({ answer }: GatedAttempt): number => answer.calls.length;
const repeats = ({ answer }: GatedAttempt): boolean =>
  new Set(answer.calls.map((call) => `${call.name} ${call.arguments}`)).size < answer.calls.length;

/** `limit`: growth that is tolerated, e.g. 0.3. */
export function toolCallsGate(cases: readonly GatedCase[], limit: number): Gate {
  if (!cases.some((one) => [...one.baseline, ...one.candidate].some((attempt) => callsOf(attempt) > 0)))
    return unmeasured(name, limit, 'Neither model called a tool.');
  const found = rise(atEqualSuccess(cases), callsOf);
  const again = rise(cases, (attempt) => Number(repeats(attempt)));
  if (found === null || again === null || again.n < fewestCases)
    return unmeasured(name, limit, 'Too few cases came out alike to compare how many calls they took.');
  const { baseline, candidate, n } = found;
  const more = candidate > baseline * (1 + limit) && candidate - baseline >= leastMore && isRise(found);
  const repeated = again.candidate - again.baseline > repeatedRise && isRise(again);
  const reason = [
    `${candidate.toFixed(2)} tool calls an attempt where the baseline makes ${baseline.toFixed(2)}, over ${n} cases that came out alike${more ? `: more than ${limit * 100}% more for the same result` : ''}.`,
    ...(repeated
      ? [`${percent(again.candidate)} of the attempts repeat a call, ${percent(again.baseline)} of the baseline’s.`]
      : []),
  ].join(' ');
  return {
    ...{ name, verdict: more || repeated ? 'fail' : 'pass', baseline, candidate, limit, reason },
    look:
      more || repeated ? lookAt(cases, (attempt) => (repeated ? repeats(attempt) : callsOf(attempt) > baseline)) : [],
  };
}
