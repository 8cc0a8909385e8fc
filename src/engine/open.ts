/**
 * The one place that makes an engine, from an installation's settings: in this process for a command that trains, or as a
 * child process for a server, because native code can die and a gateway cannot. Nothing native is loaded before it is asked for.
 */
import type { Engine } from './engine.ts';
import type { EngineProcess } from './process.ts';

/** Name of the upstream that is Pawl's own engine. */
export const engineUpstream = 'engine';

export type EngineSettings = { readonly threads?: number | undefined; readonly memoryMb?: number | undefined };

const limits = ({ threads, memoryMb }: EngineSettings) => ({
  ...(threads === undefined ? {} : { threads }),
  ...(memoryMb === undefined ? {} : { memory: Math.floor(memoryMb * 1024 * 1024) }),
});

export async function openEngine(settings: EngineSettings): Promise<Engine> {
  const { createOnnxEngine } = await import('./onnx/engine.ts');
  return createOnnxEngine(limits(settings));
}

export async function openEngineProcess(settings: EngineSettings, log: (line: string) => void): Promise<EngineProcess> {
  const { startEngine } = await import('./process.ts');
  return startEngine({ ...limits(settings), log });
}
