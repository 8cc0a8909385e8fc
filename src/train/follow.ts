/** A run before somebody's eyes: trains it and redraws, or says at the end what came of it. */
import type { Opened } from '../command.ts';
import type { Engine } from '../engine/engine.ts';
import { plain } from '../terminal.ts';
import { modelFolder, runPlaces } from './checkpoints.ts';
import { mlflowTracker } from './mlflow.ts';
import type { Plan } from './plan.ts';
import { exportResult, resultOf } from './result.ts';
import { train } from './run.ts';
import type { RunStore } from './run-record.ts';
import { renderRun } from './view.ts';

/** Trains and redraws until the run ends. The first Ctrl-C or SIGTERM pauses after the step. */
export async function follow(
  id: string,
  runs: RunStore,
  given: {
    readonly engine: Engine;
    readonly plan: Plan;
    readonly opened: Opened;
  },
  stream: NodeJS.WriteStream,
): Promise<void> {
  const { mlflow } = given.opened.config;
  const tracker = mlflow && mlflowTracker(mlflow, (sentence) => console.error(plain(sentence)));
  const places = runPlaces(given.opened.artifacts, (await runs.get(id))!);
  const draw = liveView(stream);
  given.opened.onInterrupt(() => {
    given.opened.terminal.write('Pausing after this step. Ctrl-C again stops at once; nothing that is saved is lost.');
    return runs.request(id, 'pause');
  });
  for await (const _ of train(id, { engine: given.engine, store: runs, ...given.plan, ...places, tracker }))
    draw(renderRun((await runs.get(id))!, await runs.metrics(id), stream.columns ?? 100));
}

/** A finished run's model goes to a folder of its own, to be looked at, and to the artifacts, to be served from any machine. */
export async function conclude(
  id: string,
  runs: RunStore,
  { engine, opened, json }: { readonly engine: Engine; readonly opened: Opened; readonly json: boolean },
): Promise<void> {
  const { artifacts, terminal } = opened;
  const run = (await runs.get(id))!;
  const { kind } = resultOf(run, await runs.checkpoints(id));
  const model = kind === 'finished' ? modelFolder(artifacts.home, id) : null;
  if (model !== null) await exportResult(id, model, { store: runs, engine, ...runPlaces(artifacts, run) });
  const artifact = model === null ? null : await artifacts.add({ kind: 'model' }, model);
  if (json) return terminal.write(JSON.stringify({ ...run, model, artifact }));
  terminal.write(plain(`Run ${id} is ${run.status}${run.reason ? `: ${run.reason}` : '.'}`));
  if (model === null) return terminal.write(`Go on with: pawl runs resume ${id}`);
  terminal.write(plain(`Model: ${model}`));
  terminal.write(`For any machine: ${artifact}`);
  terminal.write(
    `Make it a release: pawl releases create ${id} --agent ${run.agent} --checkpoint ${model} --run ${id}`,
  );
}

/** Redraws in place on a terminal; into a pipe goes only the newest second line, one per step. */
export function liveView(stream: NodeJS.WriteStream): (text: string) => void {
  let lines = 0;
  return (text) => {
    const safe = plain(text);
    if (!stream.isTTY) {
      stream.write(`${safe.split('\n')[1]}\n`);
      return;
    }
    stream.write(`${lines > 0 ? `\u001b[${lines}A\u001b[0J` : ''}${safe}\n`);
    lines = safe.split('\n').length;
  };
}
