/** Filters of a list. What is chosen stands in the address. */
import { type FormEvent, useId } from 'react';
import { setQuery, usePlace } from '../router.tsx';

export type Filter =
  | {
      readonly kind: 'choice';
      readonly name: string;
      readonly label: string;
      readonly options: readonly (readonly [string, string])[];
    }
  | { readonly kind: 'text'; readonly name: string; readonly label: string; readonly hint?: string }
  | { readonly kind: 'day'; readonly name: string; readonly label: string };

/** What is chosen, by name; nothing chosen is ''. */
export function useFilters(filters: readonly Filter[]): Readonly<Record<string, string>> {
  const { query } = usePlace();
  return Object.fromEntries(filters.map(({ name }) => [name, query.get(name) ?? '']));
}

export function FilterBar({ filters }: { readonly filters: readonly Filter[] }) {
  const chosen = useFilters(filters);
  const ids = useId();
  const apply = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setQuery(Object.fromEntries(filters.map(({ name }) => [name, String(form.get(name) ?? '').trim()])));
  };
  const isAny = Object.values(chosen).some((value) => value !== '');
  return (
    // Text fields keep what is being typed; a new key gives them what the address says.
    <form className="filters" onSubmit={apply} key={JSON.stringify(chosen)} aria-label="Filters">
      {filters.map((filter) => (
        <label key={filter.name} htmlFor={ids + filter.name}>
          <span>{filter.label}</span>
          {filter.kind === 'choice' ? (
            <select
              id={ids + filter.name}
              name={filter.name}
              defaultValue={chosen[filter.name]}
              onChange={(event) => setQuery({ [filter.name]: event.target.value })}
            >
              <option value="">any</option>
              {filter.options.map(([value, said]) => (
                <option key={value} value={value}>
                  {said}
                </option>
              ))}
            </select>
          ) : (
            <input
              id={ids + filter.name}
              name={filter.name}
              type={filter.kind === 'day' ? 'date' : 'search'}
              defaultValue={chosen[filter.name]}
              placeholder={filter.kind === 'text' ? filter.hint : undefined}
              onChange={filter.kind === 'day' ? (event) => setQuery({ [filter.name]: event.target.value }) : undefined}
              maxLength={200}
            />
          )}
        </label>
      ))}
      <button type="submit">Search</button>
      {isAny && (
        <button
          type="button"
          className="quiet"
          onClick={() => setQuery(Object.fromEntries(filters.map(({ name }) => [name, ''])))}
        >
          Clear
        </button>
      )}
    </form>
  );
}
