/**
 * Collect: which traffic this turn learns from: what the person who asked for it said, else everything since the last window,
 * up to now. Nothing is sent.
 */
import { engineWeights } from '../engine/open.ts';
import { ConfigError } from '../errors.ts';
import { listLoopTurns } from '../store/loop-turns.ts';
import type { TrafficWindow } from '../store/loops.ts';
import { countWindow } from '../store/new-traffic.ts';
import { servingRelease } from '../store/releases.ts';
import { nextWindowStart } from './facts.ts';
import type { Step, Work } from './parts.ts';

export const collect: Step = async (work, turn) => {
  const { store, agent, recorded } = work;
  const release = await servingRelease(store, turn.agent);
  const checkpoint = (release && engineWeights(release)) ?? agent.train.base;
  if (release === null || checkpoint === undefined)
    throw new ConfigError(
      `Agent ${turn.agent} has no release that serves, or none to train from; set \`train.base\` in its file, or \`pawl releases serve\` one.`,
    );
  const window = turn.state.begun?.window ?? (await sinceLast(work));
  // Answers are recorded behind the caller's back. Until the last of them is in the database the window is not whole, and a
  // crash could still take some of it.
  await recorded();
  const conversations = await countWindow(store, { agent: turn.agent, origin: agent.curate.on, ...window });
  return { baseline: { release: release.name, checkpoint }, collect: { ...window, conversations } };
};

async function sinceLast({ store, agent }: Work): Promise<TrafficWindow> {
  return { since: nextWindowStart(await listLoopTurns(store, agent.name)), until: Date.now() };
}
