/**
 * The pages, in the order of the loop. A page is a file in pages/ that exports its component as default; it is loaded when it is
 * first opened. `/stage` and `/stage/ID` lead to the same page, which reads the rest of the address itself.
 */
import { type ComponentType, lazy } from 'react';

export type PageProps = {
  /** Of the path, behind the page's own name. */
  readonly rest: readonly string[];
};
export type PageEntry = { readonly at: string; readonly name: string; readonly Page: ComponentType<PageProps> };

export const pages: readonly PageEntry[] = [
  { at: '', name: 'Overview', Page: lazy(() => import('./pages/overview.tsx')) },
  { at: 'collect', name: 'Collect', Page: lazy(() => import('./pages/collect.tsx')) },
  { at: 'score', name: 'Score', Page: lazy(() => import('./pages/score.tsx')) },
  { at: 'curate', name: 'Curate', Page: lazy(() => import('./pages/curate.tsx')) },
  { at: 'train', name: 'Train', Page: lazy(() => import('./pages/train.tsx')) },
  { at: 'evaluate', name: 'Evaluate', Page: lazy(() => import('./pages/evaluate.tsx')) },
  { at: 'deploy', name: 'Deploy', Page: lazy(() => import('./pages/deploy.tsx')) },
  { at: 'review', name: 'Review', Page: lazy(() => import('./pages/review.tsx')) },
  { at: 'settings', name: 'Settings', Page: lazy(() => import('./pages/settings.tsx')) },
  { at: 'audit', name: 'Audit', Page: lazy(() => import('./pages/audit.tsx')) },
];
