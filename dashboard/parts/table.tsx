/**
 * A list of any length: only the rows in view are in the document. Rows are of one height, so that the place of each is known
 * and nothing jumps. Short tables (`Plain`) are whole and take the height they need.
 */
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Link } from '../router.tsx';
import type { Rows } from '../rows.ts';
import { Failed } from './states.tsx';

export type Column<T> = {
  readonly name: string;
  readonly cell: (row: T) => ReactNode;
  /** Its heading is somebody's name, which goes on in a second line. */
  readonly isLong?: boolean;
  /** Numbers stand to the right. */
  readonly isNumber?: boolean;
  /** Of the width of all, beside the others; 1 without it. */
  readonly grow?: number;
  /** Left out where there is little room. */
  readonly isWide?: boolean;
};

export const rowHeight = 34;
/** Rows drawn above and below those in view. */
const margin = 12;

type TableProps<T> = {
  readonly label: string;
  readonly rows: Rows<T>;
  readonly columns: readonly Column<T>[];
  readonly idOf: (row: T) => string;
  /** Where a row leads; the first column is the link. */
  readonly to?: (row: T) => string;
  readonly empty: ReactNode;
};

const useIsNarrow = (): boolean => {
  const [isNarrow, setNarrow] = useState(() => matchMedia('(max-width: 700px)').matches);
  useEffect(() => {
    const query = matchMedia('(max-width: 700px)');
    const tell = () => setNarrow(query.matches);
    query.addEventListener('change', tell);
    return () => query.removeEventListener('change', tell);
  }, []);
  return isNarrow;
};

const shownOf = <T,>(columns: readonly Column<T>[], isNarrow: boolean) =>
  columns.filter(({ isWide = false }) => !(isWide && isNarrow));

function Head<T>({ columns }: { readonly columns: readonly Column<T>[] }) {
  const all = columns.reduce((sum, { grow = 1 }) => sum + grow, 0);
  return (
    <>
      <colgroup>
        {columns.map(({ name, grow = 1 }) => (
          <col key={name} style={{ width: `${(100 * grow) / all}%` }} />
        ))}
      </colgroup>
      <thead>
        <tr>
          {columns.map(({ name, isNumber = false, isLong = false }) => (
            <th key={name} scope="col" className={`${isNumber ? 'number' : ''}${isLong ? ' long' : ''}`}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
    </>
  );
}

function Cells<T>({
  row,
  columns,
  to,
}: {
  readonly row: T;
  readonly columns: readonly Column<T>[];
  readonly to: string | undefined;
}) {
  return columns.map(({ name, cell, isNumber }, at) => (
    <td key={name} className={isNumber ? 'number' : ''}>
      {at === 0 && to !== undefined ? (
        <Link className="row-link" to={to}>
          {cell(row)}
        </Link>
      ) : (
        cell(row)
      )}
    </td>
  ));
}

export function Table<T>({ label, rows: list, columns: all, idOf, to, empty }: TableProps<T>) {
  const { rows, more, isWhole } = list;
  const columns = shownOf(all, useIsNarrow());
  const scroller = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const length = rows?.length ?? 0;

  useEffect(() => {
    const node = scroller.current;
    if (node === null) return;
    const look = () => setView({ top: node.scrollTop, height: node.clientHeight });
    const sized = new ResizeObserver(look);
    sized.observe(node);
    node.addEventListener('scroll', look, { passive: true });
    return () => {
      sized.disconnect();
      node.removeEventListener('scroll', look);
    };
  }, []);

  // What comes in above does not move what is being read.
  const head = useRef<{ readonly id: string; readonly length: number } | null>(null);
  useLayoutEffect(() => {
    const node = scroller.current;
    const first = rows?.[0];
    const before = head.current;
    head.current = first === undefined ? null : { id: idOf(first), length };
    if (node === null || rows === null || before === null || node.scrollTop === 0) return;
    const added = rows.findIndex((row) => idOf(row) === before.id);
    if (added > 0) node.scrollTop += added * rowHeight;
  }, [rows, length, idOf]);

  const from = Math.max(0, Math.floor(view.top / rowHeight) - margin);
  const until = Math.min(length, Math.ceil((view.top + view.height) / rowHeight) + margin);
  useEffect(() => {
    if (rows !== null && !isWhole && until >= length - margin) more();
  }, [rows, until, length, isWhole, more]);

  if (list.problem !== null) return <Failed problem={list.problem} again={list.again} />;
  if (rows !== null && length === 0 && isWhole) return empty;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="scroller" ref={scroller} aria-label={`${label}, table`} tabIndex={0}>
      <table aria-rowcount={isWhole ? length + 1 : -1}>
        <Head columns={columns} />
        <tbody>
          {from > 0 && (
            <tr style={{ height: from * rowHeight }}>
              <td colSpan={columns.length} />
            </tr>
          )}
          {rows === null
            ? Array.from({ length: 12 }, (_, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
                <tr key={at}>
                  <td colSpan={columns.length}>
                    <div className="bone" />
                  </td>
                </tr>
              ))
            : rows.slice(from, until).map((row, at) => (
                <tr key={idOf(row)} aria-rowindex={from + at + 2}>
                  <Cells row={row} columns={columns} to={to?.(row)} />
                </tr>
              ))}
          {until < length && (
            <tr style={{ height: (length - until) * rowHeight }}>
              <td colSpan={columns.length} />
            </tr>
          )}
        </tbody>
      </table>
      {rows !== null && !isWhole && <p className="note">Reading on …</p>}
    </section>
  );
}

type PlainProps<T> = Omit<TableProps<T>, 'rows'> & { readonly rows: readonly T[] };

export function Plain<T>({ label, rows, columns: all, idOf, to, empty }: PlainProps<T>) {
  const columns = shownOf(all, useIsNarrow());
  if (rows.length === 0) return empty;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="plain" aria-label={`${label}, table`} tabIndex={0}>
      <table>
        <Head columns={columns} />
        <tbody>
          {rows.map((row) => (
            <tr key={idOf(row)}>
              <Cells row={row} columns={columns} to={to?.(row)} />
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
