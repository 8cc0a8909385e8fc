/**
 * How full the memory of the engine's machine is, told with an answer where it is asked for: Pawl's own server has no page of figures,
 * and whoever checks whether a release fits where it is to serve (evaluate/probe.ts) may sit behind a gateway on another machine.
 */
export const tellMemory = 'x-tell-memory';
/** 0 to 1. */
export const memoryUsed = 'x-memory-used';
