/**
 * Loaded into the gateway's process and its threads (NODE_OPTIONS=--import …) before anything else, so that a chaos run can
 * do what nobody can do to a process from outside:
 *
 *   the clock     Date tells the time of the machine plus the milliseconds that stand in the file CHAOS_CLOCK
 *   the recorder  SIGUSR2 ends the recorder's thread where it stands, as an out-of-memory in it would
 */
import { readFileSync } from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const file = process.env.CHAOS_CLOCK;
if (file !== undefined) {
  const RealDate = Date;
  let offset = 0;
  const look = () => {
    try {
      offset = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      offset = 0; // no file: the machine's own time
    }
  };
  look();
  setInterval(look, 50).unref();
  const told = () => RealDate.now() + offset;
  globalThis.Date = /** @type {DateConstructor} */ (
    new Proxy(RealDate, {
      apply: () => new RealDate(told()).toString(),
      construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [told()] : args, newTarget),
      get: (target, name, receiver) => (name === 'now' ? told : Reflect.get(target, name, receiver)),
    })
  );
}

if (isMainThread && process.env.CHAOS_CLOCK !== undefined) {
  const threads = createRequire(import.meta.url)('node:worker_threads');
  /** @type {import('node:worker_threads').Worker[]} oldest first: the first records, others stand by */
  const recorders = [];
  threads.Worker = class extends threads.Worker {
    /** @param {[string | URL, import('node:worker_threads').WorkerOptions?]} args */
    constructor(...args) {
      super(...args);
      if (args[1]?.name !== 'recorder') return;
      recorders.push(/** @type {any} */ (this));
      this.once('exit', () => recorders.splice(recorders.indexOf(/** @type {any} */ (this)), 1));
    }
  };
  syncBuiltinESMExports();
  process.on('SIGUSR2', () => void recorders[0]?.terminate());
}
