/**
 * Random numbers that are the same on every machine for the same seed: the engine promises repeatable initialisation and
 * sampling, and Math.random cannot be seeded. The generator is sfc32 (Chris Doty-Humphrey's PractRand), seeded through a
 * few rounds so that neighbouring seeds do not resemble each other.
 */
export type Random = () => number;

/** Uniform in [0, 1) with 32 bits. `stream` tells independent users of one seed apart. */
export function seededRandom(seed: number, stream = 0): Random {
  let a = seed | 0;
  let b = Math.floor(seed / 2 ** 32) | 0;
  let c = stream | 0;
  let counter = 1;
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    return (t >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 16; i++) next();
  return next;
}

/** Standard normal by Box–Muller; both values of a pair are used. */
export function normal(random: Random): () => number {
  let spare: number | undefined;
  return () => {
    if (spare !== undefined) {
      const value = spare;
      spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}
