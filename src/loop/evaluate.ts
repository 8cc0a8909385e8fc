/**
 * Evaluate: registers the candidate, so that it can be asked like any release, and plays the golden cases with it and with
 * the release that serves. Nobody is routed to it yet.
 */
import { createRelease } from '../deploy/reconcile.ts';
import { findRelease } from '../deploy/register.ts';
import { engineUpstream } from '../engine/open.ts';
import { BoundaryError } from '../errors.ts';
import { findAsked } from '../evaluate/ask.ts';
import { withDoor } from '../evaluate/door.ts';
import { evaluateReleases } from '../evaluate/run.ts';
import { candidateName, type Step } from './parts.ts';

export const evaluate: Step = async (work, turn) => {
  const { store, artifacts, agent, gatewayUrl, say, signal } = work;
  const name = candidateName(turn);
  const { checkpoint, run } = turn.state.train!;
  const from = { checkpoint, run, dataset: turn.state.curate!.dataset ?? null };
  const { id: parent } = await findRelease(store, agent.name, turn.state.baseline!.release);
  const made = { agent: agent.name, name, upstream: engineUpstream, model: name, parent, ...from };
  await createRelease(store, made, 'pawl', Date.now());
  const asked = { candidate: name, baseline: turn.state.baseline!.release, seed: turn.seed };
  const report = await evaluateReleases({
    ...(await findAsked(store, artifacts, agent, asked)),
    upstreams: {}, // its candidates are the engine's
    play: {
      withEngine: async (use) => use(await work.engine()),
      withDoor: async (use) => {
        const url = await gatewayUrl();
        if (url === null)
          throw new BoundaryError(
            'Cases are asked through the gateway, and none runs that can be reached from here: start `pawl serve` or `pawl gateway`; the turn goes on then.',
          );
        return withDoor(store, { agent: agent.name, url, signal }, use);
      },
    },
    signal,
    onProgress: (played, total) => say.progress('evaluate', played / total, `${played} of ${total} attempts`),
  });
  const { overall, verdict, reasons, id } = report;
  if (overall === null) throw new Error(`The golden cases could not be played: ${reasons.join(' ')}`);
  const { baseline: before, candidate: after, interval, p } = overall;
  return { evaluate: { report: id, verdict, before, after, interval, p, reasons } };
};
