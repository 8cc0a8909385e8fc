/** Filters of a list. What is chosen stands in the address. */
import { type FormEvent, useId } from 'react';
import { setQuery, usePlace } from '../router.tsx';

export type Filter = {
  readonly name: string;
  readonly label: string;
  /** Folded away until one of these is chosen. */
  readonly isMore?: true;
} & (
  | { readonly kind: 'choice'; readonly options: readonly (readonly [string, string])[] }
  | { readonly kind: 'text'; readonly hint?: string }
  | { readonly kind: 'day' }
);

/** What is chosen, by name; nothing chosen is ''. */
export function useFilters(filters: readonly Filter[]): Readonly<Record<string, string>> {
  const { query } = usePlace();
  return Object.fromEntries(filters.map(({ name }) => [name, query.get(name) ?? '']));
}

export function FilterBar({ filters }: { readonly filters: readonly Filter[] }) {
  const chosen = useFilters(filters);
  const apply = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setQuery(Object.fromEntries(filters.map(({ name }) => [name, String(form.get(name) ?? '').trim()])));
  };
  const isAny = Object.values(chosen).some((value) => value !== '');
  const [first, more] = [filters.filter(({ isMore }) => !isMore), filters.filter(({ isMore }) => isMore)];
  const fields = (some: readonly Filter[]) =>
    some.map((filter) => <Field key={filter.name} filter={filter} value={chosen[filter.name] ?? ''} />);
  return (
    // Text fields keep what is being typed; a new key gives them what the address says.
    <form className="filters" onSubmit={apply} key={JSON.stringify(chosen)} aria-label="Filters">
      {fields(first)}
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
      {more.length > 0 && (
        <details open={more.some(({ name }) => chosen[name] !== '')}>
          <summary>More filters</summary>
          <div className="filters">{fields(more)}</div>
        </details>
      )}
    </form>
  );
}

function Field({ filter, value }: { readonly filter: Filter; readonly value: string }) {
  const id = useId();
  const { name, label } = filter;
  const set = (event: { readonly target: { readonly value: string } }) => setQuery({ [name]: event.target.value });
  return (
    <label htmlFor={id}>
      <span>{label}</span>
      {filter.kind === 'choice' ? (
        <select id={id} name={name} defaultValue={value} onChange={set}>
          <option value="">any</option>
          {filter.options.map(([option, said]) => (
            <option key={option} value={option}>
              {said}
            </option>
          ))}
        </select>
      ) : filter.kind === 'day' ? (
        <input id={id} name={name} type="date" defaultValue={value} onChange={set} />
      ) : (
        <input id={id} name={name} type="search" defaultValue={value} placeholder={filter.hint} maxLength={200} />
      )}
    </label>
  );
}
