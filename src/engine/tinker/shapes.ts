/**
 * Few shapes, because a JAX server compiles for every new one: 26 seconds for a first training batch, 9 for a first sample.
 * Sizes are rounded up to two significant bits (1, 2, 3, 4, 6, 8, 12, 16, 24 …), as SkyRL does with lengths: at most half more
 * than was asked for, 16 sizes up to 256. Pure.
 */
export function roundUp(size: number): number {
  if (size <= 2) return size;
  const step = 2 ** (Math.floor(Math.log2(size)) - 1);
  return Math.ceil(size / step) * step;
}
