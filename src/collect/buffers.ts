/**
 * Memory that crosses to the recorder's thread and back. What is allocated anew for each hand-over comes from the kernel page by page, and the
 * thread that gets it collects its garbage after every 64 MB of it, however little garbage there is: at a hundred megabytes a
 * second that was most of what its collector did. So large ones go round. What is kept is bounded, and given up when it is calm.
 */
export type Buffers = {
  /** At least so large; what is in it is anything. */
  take(bytes: number): ArrayBuffer;
  /** One that came back. */
  give(buffer: ArrayBuffer): void;
  /** Gives up what is kept. */
  clear(): void;
};

/** Smaller ones cost little, and so many may wait that what is left over of each would add up. */
const SMALLEST = 256 * 1024;
const STEP = 128 * 1024;
const MOST = 32 * 1024 * 1024;

export const isWorthReturning = (buffer: ArrayBuffer): boolean => buffer.byteLength >= SMALLEST;

export function createBuffers(most = MOST): Buffers {
  const bySize = new Map<number, ArrayBuffer[]>();
  let kept = 0;
  return {
    take(bytes) {
      if (bytes < SMALLEST) return new ArrayBuffer(bytes);
      const size = Math.ceil(bytes / STEP) * STEP;
      const found = bySize.get(size)?.pop();
      if (found === undefined) return new ArrayBuffer(size);
      kept -= size;
      return found;
    },
    give(buffer) {
      const size = buffer.byteLength;
      if (!isWorthReturning(buffer) || size % STEP > 0 || kept + size > most) return;
      kept += size;
      const others = bySize.get(size);
      if (others === undefined) bySize.set(size, [buffer]);
      else others.push(buffer);
    },
    clear() {
      bySize.clear();
      kept = 0;
    },
  };
}
