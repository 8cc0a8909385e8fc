/** Where we are is the address, and nothing else: every state of a page that somebody may want to send to somebody stands in it. */
import { type AnchorHTMLAttributes, useSyncExternalStore } from 'react';

const moved = new Event('pawl:moved');

const subscribe = (tell: () => void): (() => void) => {
  window.addEventListener('popstate', tell);
  window.addEventListener(moved.type, tell);
  return () => {
    window.removeEventListener('popstate', tell);
    window.removeEventListener(moved.type, tell);
  };
};

export type Place = { readonly parts: readonly string[]; readonly query: URLSearchParams };

export function usePlace(): Place {
  const address = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const [path = '', search = ''] = address.split('?', 2);
  return { parts: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(search) };
}

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

/** Of the parts of a path; each is encoded. */
export const pathTo = (...parts: readonly string[]): string => `/${parts.map(encodeURIComponent).join('/')}`;

/** The agent goes along from page to page. */
export function withAgent(to: string): string {
  const agent = new URLSearchParams(location.search).get('agent');
  const [path = '', search = ''] = to.split('?', 2);
  const query = new URLSearchParams(search);
  if (agent !== null && !query.has('agent')) query.set('agent', agent);
  return query.size === 0 ? path : `${path}?${query}`;
}

export function goTo(to: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  window.dispatchEvent(moved);
  if (how === 'push') window.scrollTo(0, 0);
}

/** Changes what stands behind the `?`; empty values are taken out. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  goTo(query.size === 0 ? location.pathname : `${location.pathname}?${query}`, 'replace');
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { readonly to: string };

export function Link({ to, ...rest }: LinkProps) {
  const href = withAgent(to);
  return (
    <a
      {...rest}
      href={href}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        goTo(href);
      }}
    />
  );
}
