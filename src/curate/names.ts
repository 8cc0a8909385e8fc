/** Whose a conversation is, as numbers: users, client keys, tenants and task types are few, and the same again and again. */
import type { Column } from './column.ts';

export type Names = {
  readonly count: number;
  numberOf(name: string): number;
  name(number: number): string;
};

export function createNames(): Names {
  const numbers = new Map<string, number>();
  const names: string[] = [];
  return {
    get count() {
      return names.length;
    },
    numberOf(name) {
      const known = numbers.get(name);
      if (known !== undefined) return known;
      numbers.set(name, names.length);
      return names.push(name) - 1;
    },
    name: (number) => names[number]!,
  };
}

/** The owners of each conversation: mostly one, seldom nobody or several. */
export type Owners = {
  readonly names: Names;
  add(owners: readonly string[]): readonly number[];
  of(i: number): readonly number[];
};

/** In `which` is of each conversation twice the owner; or twice the number of a list, and one. */
export function createOwners(which: Column, names: Names = createNames()): Owners {
  /** Of what has several owners, or none. */
  const lists: (readonly number[])[] = [];
  const known = new Map<string, number>();
  const listOf = (numbers: readonly number[]): number => {
    const key = numbers.join();
    const at = known.get(key) ?? lists.push(numbers) - 1;
    known.set(key, at);
    return at;
  };
  return {
    names,
    add(owners) {
      const numbers = owners.map(names.numberOf);
      which.push(numbers.length === 1 ? 2 * numbers[0]! : 2 * listOf(numbers) + 1);
      return numbers;
    },
    of(i) {
      const code = which.get(i);
      return code % 2 === 0 ? [code / 2] : lists[(code - 1) / 2]!;
    },
  };
}
