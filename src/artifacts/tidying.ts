/** Once an hour: what others removed goes from this machine's copies too, and what killed processes left. */
import type { Artifacts } from './artifacts.ts';

const everyMs = 3_600_000;

export function startTidying(artifacts: Pick<Artifacts, 'tidy'>, warn: (error: unknown) => void) {
  let running: Promise<void> = Promise.resolve();
  const soon = () => {
    running = running.then(() => artifacts.tidy()).catch(warn);
  };
  const timer = setInterval(soon, everyMs);
  timer.unref();
  soon();
  return {
    async close(): Promise<void> {
      clearInterval(timer);
      await running;
    },
  };
}
