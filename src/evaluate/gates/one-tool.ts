/**
 * One tool for everything: the same tool called whatever was asked, without solving it. Handing every case to people is the
 * common form: it is never wrong in the eyes of a reward that counts mistakes.
 */
import { fewestCases, type Gate, type GatedAttempt, type GatedCase, lookAt, percent, unmeasured } from './gate.ts';
import { isRise, type Rise, rise } from './paired.ts';

const name = 'one-tool';
const mostTools = 256;

const calls = ({ answer }: GatedAttempt, tool: string): boolean => answer.calls.some((call) => call.name === tool);

/** `limit`: points by which the share of attempts may rise that call one tool and solve nothing. */
export function oneToolGate(cases: readonly GatedCase[], limit: number): Gate {
  const tools = [
    ...new Set(
      cases.flatMap(({ candidate }) => candidate.flatMap(({ answer }) => answer.calls.map((call) => call.name))),
    ),
  ].slice(0, mostTools);
  if (cases.length < fewestCases || tools.length === 0)
    return unmeasured(name, limit, 'The candidate called no tool, or there are too few cases.');
  const inVain = (tool: string) => (attempt: GatedAttempt) => !attempt.solved && calls(attempt, tool);
  const worst = tools
    .flatMap((tool): { tool: string; found: Rise }[] => {
      const found = rise(cases, (attempt) => Number(inVain(tool)(attempt)));
      return found === null ? [] : [{ tool, found }];
    })
    .reduce((most, one) =>
      one.found.candidate - one.found.baseline > most.found.candidate - most.found.baseline ? one : most,
    );
  const { tool, found } = worst;
  const { baseline, candidate } = found;
  const fails = candidate - baseline > limit && isRise(found);
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline, candidate, limit },
    reason: `${percent(candidate)} of the attempts call ${tool} and solve nothing, ${percent(baseline)} of the baseline’s${fails ? ': one tool for whatever is asked' : ''}.`,
    look: fails ? lookAt(cases, inVain(tool)) : [],
  };
}
