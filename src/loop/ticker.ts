/** A turn for a person at a terminal: stages as they go, on one line that changes, and as they end. */
import { type openTerminal, plain } from '../terminal.ts';
import { progressBar } from '../train/view.ts';
import { stageLines } from './show.ts';
import type { LoopState, StageName } from './turn.ts';

export function stageTicker(paint: ReturnType<typeof openTerminal>['paint']) {
  const clear = () => {
    if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
  };
  return {
    progress(stage: StageName, share: number, text: string) {
      if (!process.stdout.isTTY) return;
      clear();
      process.stdout.write(`  ${stage.padEnd(10)}${progressBar(share, 20)}  ${paint.dim(text)}`);
    },
    done(stage: StageName, state: LoopState) {
      clear();
      const seconds = `${(state.seconds?.[stage] ?? 0).toFixed(0)} s`;
      for (const [i, text] of stageLines(stage, state).entries())
        console.log(`  ${(i === 0 ? stage : '').padEnd(10)}${plain(text)}${i === 0 ? paint.dim(`  ${seconds}`) : ''}`);
    },
  };
}
