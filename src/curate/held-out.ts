/**
 * Who is never learned from, so that there are people on whom a model can be measured that it has not seen. Pure and sticky: a
 * user's place in [0, 1) follows from agent and user alone, so a larger share only adds to those who are held out. A
 * conversation without a user is placed by its question. That a smaller share lets nobody back in is the database's to remember
 * (store/holdouts.ts).
 */
import { createHash } from 'node:crypto';

const placeOf = (agent: string, who: string): number =>
  createHash('sha256')
    .update(JSON.stringify(['held out', agent, who]))
    .digest()
    .readUInt32BE() /
  2 ** 32;

export function isHeldOut(
  { agent, users, question }: { readonly agent: string; readonly users: readonly string[]; readonly question: string },
  share: number,
): boolean {
  const who = users.length > 0 ? users.map((user) => `user ${user}`) : [`question ${question}`];
  return share > 0 && who.some((one) => placeOf(agent, one) < share);
}
