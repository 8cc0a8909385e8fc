/** Tabs are places: each stands in the address, so that a link leads to one of them. */
import type { ReactNode } from 'react';
import { Link, usePlace } from '../router.tsx';

export type Tab = { readonly id: string; readonly name: ReactNode };

export function useTab(tabs: readonly Tab[], key = 'tab'): string {
  const asked = usePlace().query.get(key);
  return tabs.some(({ id }) => id === asked) ? asked! : tabs[0]!.id;
}

type TabsProps = { readonly tabs: readonly Tab[]; readonly label: string; readonly name?: string };

export function Tabs({ tabs, label, name: key = 'tab' }: TabsProps) {
  const current = useTab(tabs, key);
  const { query } = usePlace();
  const to = (id: string, isFirst: boolean): string => {
    const next = new URLSearchParams(query);
    if (isFirst) next.delete(key);
    else next.set(key, id);
    return next.size === 0 ? location.pathname : `${location.pathname}?${next}`;
  };
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ id, name }, at) => (
        <Link key={id} to={to(id, at === 0)} aria-current={id === current ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
