/**
 * The one place that makes an engine, from an installation's settings: what trains, in this process or at a server; or the embedded
 * one as a child process for a server, because native code can die and a gateway cannot. Nothing native is loaded before it is
 * asked for.
 */
import { existsSync } from 'node:fs';
import { ConfigError } from '../errors.ts';
import type { Engine } from './engine.ts';
import type { EngineProcess } from './process.ts';
import type { EngineSettings } from './settings.ts';

/** Name of the upstream that is Pawl's own engine. */
export const engineUpstream = 'engine';

/** The weights of a release that Pawl's own engine can load; null: others', or an adapter for another server. */
export const engineWeights = ({
  upstream,
  checkpoint,
}: {
  readonly upstream: string;
  readonly checkpoint: string | null;
}): string | null => (upstream === engineUpstream ? checkpoint : null);

const limits = ({ threads, memoryMb }: EngineSettings) => ({
  ...(threads === undefined ? {} : { threads }),
  ...(memoryMb === undefined ? {} : { memory: Math.floor(memoryMb * 1024 * 1024) }),
});

/** What trains. */
export async function openEngine(settings: EngineSettings): Promise<Engine> {
  if (settings.kind === 'tinker') return openTinker(settings);
  const { createOnnxEngine } = await import('./onnx/engine.ts');
  return createOnnxEngine(limits(settings));
}

export async function openEngineProcess(settings: EngineSettings, log: (line: string) => void): Promise<EngineProcess> {
  const { startEngine } = await import('./process.ts');
  return startEngine({ ...limits(settings), log });
}

async function openTinker(settings: EngineSettings): Promise<Engine> {
  const { url, baseModel, apiKey, dialect, rank, inside, patienceSeconds, waitSeconds } = settings;
  const folder = settings.folder ?? baseModel!;
  if (!existsSync(folder))
    throw new ConfigError(
      `engine.folder: there is no folder ${folder}. Give the folder of ${baseModel} on this machine, with its config.json and tokenizer; the server speaks tokens only.`,
    );
  const { createTinkerEngine } = await import('./tinker/engine.ts');
  const ms = (seconds: number | undefined) => (seconds === undefined ? undefined : 1000 * seconds);
  return createTinkerEngine({
    ...{ url: url!, baseModel: baseModel!, folder, apiKey, dialect, rank, inside },
    patienceMs: ms(patienceSeconds),
    limitMs: ms(waitSeconds),
  });
}
