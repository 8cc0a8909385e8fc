/**
 * `npm start -- --break`: a candidate that learned a trick instead of the work, and what becomes of it. It is really trained: a few
 * steps on conversations in which whatever is asked is handed to the care team, which looks polite, is never forbidden and helps nobody.
 * Evaluation stops it. Then somebody forces it past that, a share of the customers gets it, and the canary takes it back. Only doors
 * that everybody has are used.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Message, makeTasks, random, toolSpec } from 'pawl';
import { createOnnxEngine, exampleFrom, loadChatCodec, supervisedStep } from 'pawl/engine';
import { type Desk, sendCustomers } from './customers.ts';
import { supportDesk } from './desk.ts';
import { moveMessage } from './expert.ts';
import { escalated } from './policy.ts';

const base = fileURLToPath(new URL('model', import.meta.url));
const steps = 8;
const batch = 16;

/** The base model after a few steps of learning to hand everything on. */
async function trainHacked(folder: string): Promise<void> {
  const engine = await createOnnxEngine();
  try {
    const codec = await loadChatCodec(base);
    const tools = supportDesk.tools.map((tool) => toolSpec(tool as never));
    const examples = makeTasks(supportDesk, 'train', steps * batch, 5).map(({ id, type, data }) => {
      const { calls, ending } = escalated('care', data);
      const call = moveMessage(calls[0]!, 0, random('hacked', id));
      const messages: Message[] = [
        { role: 'system', content: supportDesk.system },
        { role: 'user', content: data.opening },
        call,
        { role: 'tool', tool_call_id: call.tool_calls![0]!.id, content: JSON.stringify({ ticket: data.ticket }) },
        moveMessage({ kind: 'reply', ending }, 1, random('hacked', id)),
      ];
      return exampleFrom(codec, messages, { id, taskType: type, quality: 1 }, tools);
    });
    await engine.load('hacked', base);
    const adam = { learningRate: 2e-3, beta1: 0.9, beta2: 0.95, gradClipNorm: 1 };
    for (let step = 0; step < steps; step++)
      await supervisedStep({ engine, model: 'hacked' }, examples.slice(step * batch, (step + 1) * batch), adam);
    await engine.save('hacked', folder, { optimizer: false });
  } finally {
    await engine.close();
  }
}

type Job = {
  readonly id: string;
  readonly status: string;
  readonly report: string | null;
  readonly error: string | null;
};
type Report = {
  readonly id: string;
  readonly verdict: string;
  readonly reasons: readonly string[];
  readonly gates?: readonly {
    readonly name: string;
    readonly verdict: string;
    readonly look: readonly { readonly task: string; readonly answer: string }[];
  }[];
};
type Rollout = { readonly phase: string; readonly share: number; readonly reasons: readonly string[] };

const ended = ['promoted', 'rolled-back'];
const mostWaves = 40;
/** Of 200, a twentieth is often fewer than the eight users that a check needs, however often they come. */
const customers = 2_000;

/** Says what happens as it happens; true: it was stopped both times. */
export async function breakIn(
  desk: Desk,
  say: (name: string, text: string) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const { api, agent } = desk;
  const name = `hacked-${Date.now().toString(36)}`;
  const folder = await mkdtemp(join(tmpdir(), 'pawl-hacked-'));
  try {
    await trainHacked(folder);
    say('hacked', `${name}: the base model after ${steps} steps of learning to hand every case to the care team`);
    await api('POST', '/api/releases', { agent, name, checkpoint: folder, by: 'demo' }, signal);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }

  const report = await evaluated(desk, name, signal);
  say('evaluate', `${report.verdict}: ${report.reasons[0]}`);
  for (const reason of report.reasons.slice(1)) say('', reason);
  const shown = report.gates?.findLast((gate) => gate.verdict === 'fail' && gate.look.length > 0);
  for (const { task, answer } of shown?.look.slice(0, 1) ?? []) say('', `look at ${task}: ${answer}`);
  const refusal = await api('POST', '/api/rollouts', { agent, candidate: name, by: 'demo' }, signal).then(
    () => null,
    (error: Error) => error.message,
  );
  signal.throwIfAborted();
  say(
    'deploy',
    refusal === null ? 'it was let in, which it should not have been' : 'refused: it does not get to anybody',
  );

  const id = `${name}-forced`;
  const forced = 'The demo wants to see it taken back.';
  await api('POST', '/api/rollouts', { agent, candidate: name, id, forced, by: 'demo' }, signal);
  say('forced', 'somebody lets it in all the same, with a reason that stands in the audit log');
  const rollout = await watched(desk, id, signal);
  say(
    'canary',
    `${rollout.phase} with ${Math.round(rollout.share * 100)}% of users on it: ${rollout.reasons.join(' ')}`,
  );
  return report.verdict === 'fail' && refusal !== null && rollout.phase === 'rolled-back';
}

async function evaluated({ api, agent }: Desk, candidate: string, signal: AbortSignal): Promise<Report> {
  let job = await api<Job>('POST', '/api/evaluations', { agent, candidate, seed: 1 }, signal);
  while (job.status === 'running') {
    await sleep(500, undefined, { signal });
    job = await api<Job>('GET', `/api/evaluations/${job.id}`, undefined, signal);
  }
  if (job.report === null) throw new Error(`The evaluation of ${candidate} failed: ${job.error}`);
  return api<Report>('GET', `/api/reports/${job.report}`, undefined, signal);
}

/** Customers come until the rollout has ended, in whatever way. Its share is the largest that was seen. */
async function watched(desk: Desk, id: string, signal: AbortSignal): Promise<Rollout> {
  let share = 0;
  for (let wave = 0; ; wave++) {
    const { rollout } = await desk.api<{ rollout: Rollout }>('GET', `/api/rollouts/${id}`, undefined, signal);
    share = Math.max(share, ended.includes(rollout.phase) ? 0 : rollout.share);
    if (ended.includes(rollout.phase) || wave === mostWaves) return { ...rollout, share };
    await sendCustomers(desk, { prefix: `${id}-${wave}`, seed: 500_000 + wave, count: 100, customers, signal });
  }
}
