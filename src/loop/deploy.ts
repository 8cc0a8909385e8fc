/**
 * Deploy: begins the candidate's rollout, which waits for a person where its report is no pass or the agent's settings say
 * so. The rollout then moves on the traffic that comes (deploy/watch-rollouts.ts), without this stage; it is entered again
 * when the rollout has ended, to note what users got. What may not be rolled out is left, with the reason.
 */
import { admit } from '../deploy/admit.ts';
import { type Fit, type FitParts, mustFit } from '../deploy/fit.ts';
import { startRollout } from '../deploy/reconcile.ts';
import { isOpen, type Rollout } from '../deploy/rollout.ts';
import { measureUsers, type Users } from '../deploy/users.ts';
import { BoundaryError, UnfitError } from '../errors.ts';
import { withDoor } from '../evaluate/door.ts';
import { readRelease, servingRelease } from '../store/releases.ts';
import { readReport } from '../store/reports.ts';
import { readRollout } from '../store/rollouts.ts';
import { candidateName, ensureLoaded, runId, type Step, type Work } from './parts.ts';
import type { LoopTurn } from './turn.ts';

export const deploy: Step = async (work, turn) => {
  const { store, agent } = work;
  const id = runId(turn);
  const name = candidateName(turn);
  const rollout = await readRollout(store, id);
  if (rollout !== null && !isOpen(rollout)) {
    const { phase, reasons } = rollout;
    return { deploy: { rollout: id, phase, release: name, reasons }, users: await usersOf(work, turn, rollout) };
  }
  const report = (await readReport(store, turn.state.evaluate!.report))!;
  const baseline = (await servingRelease(store, agent.name))?.name ?? turn.state.baseline!.release;
  const asking = { agent: agent.name, candidate: name, baseline, report, settings: agent.deploy, forced: null };
  const { phase, reason } = admit(asking);
  if (phase === 'refused') {
    const reasons = report.verdict === 'pass' ? [reason] : report.reasons;
    return {
      deploy: { rollout: null, phase: `not deployed: ${report.verdict}`, release: name, reasons },
      users: await usersOf(work, turn, null),
    };
  }
  const candidate = (await readRelease(store, { agent: agent.name, name }))!;
  await ensureLoaded(await work.engine(), name, turn.state.train!.checkpoint, work.artifacts);
  const about = { id, agent: agent.name, candidate, report, settings: agent.deploy, origin: agent.curate.on };
  const fit: Fit = (release) => mustFit({ store, upstreams: {}, ...doorOf(work) }, agent, release, fitAsked);
  try {
    await startRollout(store, { ...about, fit, actor: 'pawl', lead: work.lead }, Date.now());
  } catch (error) {
    // A server that was merely away is asked again.
    if (!(error instanceof UnfitError) || error.retryable) throw error;
    return {
      deploy: { rollout: null, phase: 'not deployed: unfit', release: name, reasons: [error.message] },
      users: await usersOf(work, turn, null),
    };
  }
  return null;
};

const fitAsked = { actor: 'pawl', way: 'rollout' };

const doorOf = ({ store, agent, gatewayUrl, say, signal }: Work): Pick<FitParts, 'withDoor' | 'say' | 'signal'> => ({
  async withDoor(use) {
    const url = await gatewayUrl();
    if (url === null)
      throw new BoundaryError(
        'Whether the candidate fits where it is to serve is asked through the gateway, and none runs that can be reached from here: start `pawl serve` or `pawl gateway`; the turn goes on then.',
        { retryable: true },
      );
    return withDoor(store, { agent: agent.name, url, signal }, use);
  },
  say: (text) => say.progress('deploy', 0, text.trim()),
  signal,
});

async function usersOf({ store, agent }: Work, turn: LoopTurn, rollout: Rollout | null): Promise<Users | null> {
  const { outcome } = agent.deploy;
  if (outcome === null) return null;
  const { baseline, collect } = turn.state;
  const of = { agent: agent.name, baseline: baseline!.release, candidate: candidateName(turn) };
  return measureUsers(store, { ...of, outcome, collected: collect!, rollout, origin: agent.curate.on }, Date.now());
}
