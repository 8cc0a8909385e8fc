/**
 * A value that only the words around it gave away ("my passport is M12345678") is masked wherever else it stands in the same
 * turn, without those words too, and by the same placeholder. Whole words only, and nothing that could be a word of the
 * protocol: a password that is spelled `assistant` must not rename anybody's role.
 */
const MOST_VALUES = 100;
const LONGEST = 128;
const canSpread = /[\d\s]|[^ -~]|^[A-Z]/;
const isHangul = (value: string): boolean => /^[\p{Script=Hangul}\s]+$/u.test(value);

/** `spend` is told how many characters are looked at. */
export function spreading(
  told: ReadonlyMap<string, string>,
  spend: (characters: number) => void,
): (value: unknown) => unknown {
  const values = [...told.keys()]
    .filter((value) => value.length >= (isHangul(value) ? 2 : 4) && value.length <= LONGEST && canSpread.test(value))
    .sort((a, b) => b.length - a.length)
    .slice(0, MOST_VALUES);
  if (values.length === 0) return (value) => value;
  const search = new RegExp(values.map(whole).join('|'), 'gu');
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') {
      spend(value.length);
      return value.replace(search, (found) => told.get(found) ?? found);
    }
    if (typeof value === 'number') return told.get(String(value)) ?? value;
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      const items = value.map(walk);
      return items.some((item, i) => item !== value[i]) ? items : value;
    }
    const entries = Object.entries(value).map(([key, item]) => [walk(key) as string, walk(item)] as const);
    const isChanged = entries.some(([key, item]) => (value as Record<string, unknown>)[key] !== item);
    return isChanged ? Object.fromEntries(entries) : value;
  };
  return walk;
}

/** As a whole word; in Korean particles touch what they stand behind. */
function whole(value: string): string {
  const escaped = value.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const before = /^[A-Za-z0-9]/.test(value) ? '(?<![A-Za-z0-9])' : '';
  const behind = /[A-Za-z0-9]$/.test(value) ? '(?![A-Za-z0-9])' : '';
  return `${before}${escaped}${behind}`;
}
