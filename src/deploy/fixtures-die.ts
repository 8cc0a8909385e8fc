/**
 * Dies at the n-th statement of what changes the database (from the first `begin` on), for tests: before it is sent, or once it is on its way, so that what the database made
 * of it is unknown. `how` is what dying is: in a test's own process the connection breaks, in a child the process is killed.
 */
import pg from 'pg';

type Query = (...given: unknown[]) => unknown;

export type Deadly = {
  readonly at: number;
  readonly when: 'before' | 'after';
  readonly how: (client: pg.Client) => void;
};

/** Returns how many statements there were, and takes itself away again. */
export function dieAtStatement({ at, when, how }: Deadly): () => number {
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const original = prototype.query;
  let n = 0;
  prototype.query = function die(this: pg.Client, ...given) {
    const [sent] = given as [string | { text?: string } | undefined];
    const text = typeof sent === 'string' ? sent : sent?.text;
    if (n > 0 || text === 'begin') n++;
    if (n === at && when === 'before') how(this);
    const answer = original.apply(this, given);
    if (n === at && when === 'after') how(this);
    return answer;
  };
  return () => {
    prototype.query = original;
    return n;
  };
}
