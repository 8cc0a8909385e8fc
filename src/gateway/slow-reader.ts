/** Passes bytes on to the caller. While they are not taken, the upstream waits; a caller that takes none for long is gone. */
import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';

const stalledMs = 120_000;

export function passOn(
  response: ServerResponse,
  chunk: Uint8Array,
  controller: Dispatcher.DispatchController | null,
): void {
  if (response.write(chunk) || controller === null || controller.paused) return;
  controller.pause();
  const timer = setTimeout(() => response.destroy(), stalledMs).unref();
  response.once('drain', () => {
    clearTimeout(timer);
    controller.resume();
  });
}
