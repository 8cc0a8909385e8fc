/**
 * What single words are: names of people, places, or words of the language. The dictionary is compromise's (its lexicon of some
 * 24,000 words, names and places with their tags); its own tagger is not used, because it reads 20 kB a second. Loaded once,
 * by whoever looks for entities.
 */
import nlp from 'compromise';

const tagsOf = (nlp.model() as { one: { lexicon: Record<string, string | string[]> } }).one.lexicon;

export type WordKind = 'first-name' | 'last-name' | 'place' | 'country' | 'organization' | 'day' | 'word' | 'unknown';

const kinds: readonly (readonly [WordKind, RegExp])[] = [
  ['first-name', /^(?:MaleName|FemaleName|FirstName)$/],
  ['last-name', /^LastName$/],
  ['country', /^Country$/],
  ['place', /^(?:City|Region|Place)$/],
  ['organization', /^(?:Organization|SportsTeam)$/],
  ['day', /^(?:WeekDay|Month|Date)$/],
];

/** Lists give several meanings to some; the name wins, since the caller looks at capitals too. */
export function kindOf(word: string): WordKind {
  const plain = word.toLowerCase();
  const known = Object.hasOwn(tagsOf, plain) ? tagsOf[plain] : undefined;
  if (known === undefined) return ordinary.has(plain) ? 'word' : 'unknown';
  const tags = Array.isArray(known) ? known : [known];
  for (const [kind, tag] of kinds) if (tags.some((one) => tag.test(one))) return kind;
  return 'word';
}

/** Several words that are one place: `united states`, `south korea`. */
export const isPlaceName = (words: string): boolean => {
  const kind = kindOf(words);
  return kind === 'country' || kind === 'place';
};

/** Countries as English calls them, from the platform's own tables, and what some are still called. */
const countries = new Map<string, string[]>();
{
  const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  const known = letters.flatMap((a) => letters.flatMap((b) => names.of(`${a}${b}`) ?? []));
  const also = [
    'Czech Republic',
    'Swaziland',
    'East Timor',
    'Cape Verde',
    "People's Republic of China",
    'Burma',
    'Macedonia',
    'Ivory Coast',
  ];
  also.push(
    'Federated States of Micronesia',
    'Saint Vincent and the Grenadines',
    'Antigua and Barbuda',
    'Trinidad and Tobago',
  );
  also.push(
    'Bosnia and Herzegovina',
    'Republic of Korea',
    'United States of America',
    'Sao Tome and Principe',
    'Saint Lucia',
  );
  for (const one of [...known, ...also]) {
    const plain = one.toLowerCase().replaceAll(' & ', ' and ');
    const first = plain.split(' ')[0]!;
    if (plain.length > 3)
      countries.set(
        first,
        [...(countries.get(first) ?? []), plain].sort((a, b) => b.length - a.length),
      );
  }
}

/** How long the country's name is that begins here; 0: none does. */
export function countryAt(text: string, start: number): number {
  const rest = text.slice(start, start + 40).toLowerCase();
  const first = /^[\p{L}'’.-]+/u.exec(rest)?.[0] ?? '';
  const found = countries
    .get(first)
    ?.find((name) => rest.startsWith(name) && !/^[\p{L}]/u.test(rest.slice(name.length)));
  return found?.length ?? 0;
}

/** Whether a country of more than one word may begin with it. */
export const countryStartsAt = ({ text }: { readonly text: string }): boolean =>
  countries.get(text.toLowerCase())?.includes(text.toLowerCase()) ?? false;

/** Frequent words that the dictionary leaves to its tagger. */
const ordinary = new Set(
  (
    'account accounts address addresses answer app bank bill birthday book bot box bug call card cards cash chat city client code company ' +
    'conference contact contract cost country credit customer data date day days delivery department desk email error event fax file film ' +
    'form game group guide hello hi help home hour house idea image invoice issue item items job key letter life line link list machine ' +
    'mail manager map meeting member message minute mobile model money month monthly morning name names network news night number office ' +
    'offer option options order orders package page parcel password payment pedestrian pedestrians people person phone photo picture plan ' +
    'platform point policy post price problem product project question reason receipt record refund report request result review room ' +
    'sale school score screen server service session shipping shop site size song songs software source staff star state statement status ' +
    'store story street subject subscription success summary support system table task team test text thanks thing time title today tool ' +
    'topic total tour town track trip tribute type unit update user users value version video view voice week website wisdom word work world ' +
    'year zip capitalized discipline princess royal entertainment weekly devil god thai american texas tv producer battery excuse sir'
  ).split(' '),
);
