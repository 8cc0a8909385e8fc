/**
 * The engine of a serving Pawl: started when there is something for it to do, with every release in play loaded. What is in
 * play is loaded as soon as it is known; anything else when somebody asks for it, and that is unloaded again once nobody has
 * asked for a while. An engine that dies comes back with what it had (process.ts).
 */
import type { Engine } from './engine.ts';
import { openEngine, openEngineProcess } from './open.ts';
import type { EngineProcess } from './process.ts';
import type { EngineSettings } from './settings.ts';

/** A model under the name it answers to, and what it is loaded from: a folder, or what `folderOf` finds one by. */
export type Placed = { readonly model: string; readonly checkpoint: string };

export type KeptEngine = {
  /** Starts it, if that was not done yet. */
  process(): Promise<EngineProcess>;
  /** What trains: the same process, or the server that the settings name. */
  trainer(): Promise<Engine>;
  /** Whether the model answers now. */
  isReady(model: string): boolean;
  /** Resolves when the model answers; whoever calls at the same time waits for the same load. */
  ready(placed: Placed): Promise<void>;
  /** What users may get from now on: loaded at once, and kept. */
  inPlay(placed: readonly Placed[]): void;
  readonly pid: number | undefined;
  close(): Promise<void>;
};

export type KeepOptions = {
  readonly settings: EngineSettings;
  /** Its OpenAI-compatible server answers at this address from now on. */
  readonly onStart: (url: string) => void;
  readonly log: (line: string) => void;
  /** The folder of a checkpoint on this machine. */
  readonly folderOf?: (checkpoint: string) => Promise<string>;
  readonly open?: typeof openEngineProcess;
  /** Milliseconds that a model which is not in play stays after it was last asked for. */
  readonly lingerMs?: number;
};

const retryMs = 5_000;

export function keepEngine(options: KeepOptions): KeptEngine {
  const { settings, onStart, log, open = openEngineProcess, lingerMs = 600_000 } = options;
  const { folderOf = async (checkpoint: string) => checkpoint } = options;
  let opening: Promise<EngineProcess> | null = null;
  let running: EngineProcess | null = null;
  let remote: Promise<Engine> | null = null;
  let closed = false;
  let wanted: readonly Placed[] = [];
  let retry: NodeJS.Timeout | undefined;
  const loads = new Map<string, Promise<void>>();
  /** When a loaded model was last asked for. */
  const loaded = new Map<string, number>();

  const start = (): Promise<EngineProcess> => {
    if (closed) return Promise.reject(new Error('The engine was stopped.'));
    opening ??= open(settings, log).then(
      (started) => {
        running = started;
        onStart(started.url);
        return started;
      },
      (error: unknown) => {
        opening = null;
        throw error;
      },
    );
    return opening;
  };

  const load = async ({ model, checkpoint }: Placed): Promise<void> => {
    const { engine } = await start();
    if (!(await engine.models()).some(({ name }) => name === model))
      await engine.load(model, await folderOf(checkpoint));
    loaded.set(model, Date.now());
  };

  const ready = (placed: Placed): Promise<void> => {
    if (loaded.has(placed.model)) {
      loaded.set(placed.model, Date.now());
      return Promise.resolve();
    }
    const under = loads.get(placed.model) ?? load(placed).finally(() => loads.delete(placed.model));
    loads.set(placed.model, under);
    return under;
  };

  const unloadIdle = async (): Promise<void> => {
    const keep = new Set(wanted.map(({ model }) => model));
    for (const [model, at] of loaded) {
      if (keep.has(model) || Date.now() - at < lingerMs) continue;
      loaded.delete(model);
      await running?.engine.unload(model);
    }
  };
  const say = (error: unknown) => log(error instanceof Error ? error.message : String(error));
  const sweep = setInterval(() => void unloadIdle().catch(say), Math.max(1_000, lingerMs / 4));
  sweep.unref();

  const loadWanted = async (): Promise<void> => {
    clearTimeout(retry);
    for (const placed of wanted) {
      try {
        await ready(placed);
      } catch (error) {
        if (closed) return;
        log(`${placed.model} could not be loaded from ${placed.checkpoint}: ${(error as Error).message}`);
        clearTimeout(retry);
        retry = setTimeout(() => void loadWanted(), retryMs);
        retry.unref();
      }
    }
  };

  return {
    process: start,
    async trainer() {
      if (settings.kind !== 'tinker') return (await start()).engine;
      if (closed) throw new Error('The engine was stopped.');
      remote ??= openEngine(settings);
      return remote;
    },
    isReady: (model) => loaded.has(model),
    ready,
    inPlay(placed) {
      wanted = placed;
      void loadWanted();
    },
    get pid() {
      return running?.pid;
    },
    async close() {
      closed = true;
      clearInterval(sweep);
      clearTimeout(retry);
      await opening?.then((started) => started.close()).catch(() => {});
      await remote?.then((trainer) => trainer.close()).catch(() => {});
    },
  };
}
