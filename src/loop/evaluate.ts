/** Evaluate: the golden cases with the release that serves and with the candidate, case by case, and a verdict. */
import { readFile } from 'node:fs/promises';
import { ConfigError } from '../errors.ts';
import { evaluate as play } from '../evaluate/run.ts';
import { makeSuite } from '../evaluate/suite.ts';
import { loadChatCodec } from '../simulate/chat-codec.ts';
import { parseTask } from '../simulate/environment.ts';
import { readRelease } from '../store/releases.ts';
import { readReport, saveReport } from '../store/reports.ts';
import { candidateName, ensureLoaded, type Step } from './parts.ts';

export const evaluate: Step = async (work, turn) => {
  const { store, agent, say, signal } = work;
  const { environment, evaluate: settings } = agent;
  const { release, checkpoint: base } = turn.state.baseline!;
  if (settings.golden === undefined || environment === undefined)
    throw new ConfigError(
      `The candidate of agent ${agent.name} cannot be judged without golden cases; set \`evaluate.golden\` in its file.`,
    );
  const engine = await work.engine();
  const name = candidateName(turn);
  await ensureLoaded(engine, name, turn.state.train!.checkpoint);
  const baseline = await readRelease(store, { agent: agent.name, name: release });
  await ensureLoaded(engine, baseline!.model, base);
  const lines = (await readFile(settings.golden, 'utf8')).split('\n').filter((line) => line.trim() !== '');
  const report = await play({
    ...{ agent: agent.name, engine, environment, codec: await loadChatCodec(base), seed: turn.seed, signal },
    suite: makeSuite(
      'golden',
      lines.map((line) => parseTask(environment, JSON.parse(line))),
    ),
    baseline: { name: release, model: baseline!.model },
    candidate: { name, model: name },
    attempts: settings.attempts,
    temperature: settings.temperature,
    onProgress: (played, total) => say.progress('evaluate', played / total, `${played} of ${total} episodes`),
  });
  await saveReport(store, report);
  // One that was saved before a crash stands; what follows must be about the same.
  const { overall, verdict, reasons, id } = (await readReport(store, report.id))!;
  if (overall === null) throw new Error(`The golden cases could not be played: ${reasons.join(' ')}`);
  const { baseline: before, candidate: after, interval, p } = overall;
  return { evaluate: { report: id, verdict, before, after, interval, p, reasons } };
};
