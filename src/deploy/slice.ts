/**
 * Slices of an agent's users: those with one type of task, those with personal data in their words and those without, those who
 * write one language, those who begin in few words or in many. A mean over everybody can rise while a part of them fares worse, so
 * what is measured of all is measured of each slice too. Pure.
 *
 * A user is in every slice they had a conversation in. Only slices that hold a tenth of the users count, the ten largest of
 * each dimension at most; a dimension in which everybody is alike tells nothing that the mean does not.
 */

/** Values by unit (user, else trajectory): the mean of each, summed. */
export type Sample = { readonly n: number; readonly sum: number; readonly squares: number };

export const dimensions = ['task type', 'personal data', 'language', 'length'] as const;
export type Dimension = (typeof dimensions)[number];

/** `name` is the task type; whether there is personal data, `yes` or `no`; the language, as `ko`; between how many characters. */
export type Slice = { readonly dimension: Dimension; readonly name: string };

/** What the users of one release got, all together and by slice. */
export type Served = {
  readonly outcome: Sample;
  readonly slices: readonly (Slice & { readonly outcome: Sample })[];
};

const leastShare = 0.1;
const mostPerDimension = 10;
/** What an error probability is shared over, however many slices turn up. */
export const mostSlices = dimensions.length * mostPerDimension;

export const nobody: Sample = { n: 0, sum: 0, squares: 0 };

export const sampleOf = ({ slices }: Served, { dimension, name }: Slice): Sample =>
  slices.find((one) => one.dimension === dimension && one.name === name)?.outcome ?? nobody;

/** Those of a dimension together, largest first. `sides`: whose users are meant. */
export function slicesThatCount(sides: readonly Served[]): Slice[] {
  const users = sides.reduce((sum, { outcome }) => sum + outcome.n, 0);
  return dimensions.flatMap((dimension) => {
    const sizes = new Map<string, number>();
    for (const { slices } of sides)
      for (const { dimension: of, name, outcome } of slices)
        if (of === dimension) sizes.set(name, (sizes.get(name) ?? 0) + outcome.n);
    if (sizes.size < 2) return [];
    return [...sizes]
      .filter(([, size]) => size >= leastShare * users)
      .sort(([a, sizeA], [b, sizeB]) => sizeB - sizeA || (a < b ? -1 : 1))
      .slice(0, mostPerDimension)
      .map(([name]) => ({ dimension, name }));
  });
}

/** As a person reads it. */
export const sliceTitle = ({ dimension, name }: Slice): string => {
  switch (dimension) {
    case 'task type':
      return `task type ${name}`;
    case 'personal data':
      return name === 'yes' ? 'with personal data' : 'without personal data';
    case 'language':
      return `language ${name}`;
    case 'length':
      return `length ${name} characters`;
    default:
      return dimension satisfies never;
  }
};
