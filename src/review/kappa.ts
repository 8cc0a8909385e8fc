/**
 * Cohen's κ of two people who labelled the same conversations: how much more often they agree than two who label at random
 * with the same habits. Labels are taken as good (0.5 and above) or not. 1: always; 0: as chance would; under 0.4 is poor, and
 * then a reward that agrees with one of them agrees with nobody.
 */
export type Rated = {
  readonly trajectory: string;
  readonly reviewer: string;
  readonly score: number;
};

export type Agreement = {
  /** Conversations with two reviewers or more. */
  readonly both: number;
  /** null: nobody looked at the same, or all was rated alike, which leaves chance no room. */
  readonly kappa: number | null;
};

const good = (score: number): boolean => score >= 0.5;

/** Over all conversations that two people rated; of more than two, the first two by name. */
export function cohensKappa(ratings: readonly Rated[]): Agreement {
  const byTrajectory = new Map<string, Rated[]>();
  for (const rated of ratings) {
    const known = byTrajectory.get(rated.trajectory);
    if (known === undefined) byTrajectory.set(rated.trajectory, [rated]);
    else known.push(rated);
  }
  const pairs = [...byTrajectory.values()].flatMap((all) => {
    const [first, second] = [...all].sort((a, b) => (a.reviewer < b.reviewer ? -1 : 1));
    return first === undefined || second === undefined || first.reviewer === second.reviewer
      ? []
      : [[good(first.score), good(second.score)] as const];
  });
  const n = pairs.length;
  if (n === 0) return { both: 0, kappa: null };
  const observed = pairs.filter(([a, b]) => a === b).length / n;
  const [first, second] = [0, 1].map((i) => pairs.filter((pair) => pair[i as 0 | 1]).length / n) as [number, number];
  const chance = first * second + (1 - first) * (1 - second);
  return { both: n, kappa: chance >= 1 ? null : (observed - chance) / (1 - chance) };
}
