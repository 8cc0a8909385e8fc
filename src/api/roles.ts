/**
 * Which role each route needs, and where a request says who does it: one table, which a test holds against the document of routes.
 * What is not in it is the admin's alone.
 */
import { type AccessRole, accessRoles } from '../store/access.ts';

type Need = {
  readonly role: AccessRole;
  /** The field that names who does it. Somebody with an access token is named by it, whatever they send. */
  readonly body?: string;
  readonly query?: string;
};

const viewer: Need = { role: 'viewer' };
const operator: Need = { role: 'operator' };
const admin: Need = { role: 'admin' };
const named = { body: 'by' };

const needs: Readonly<Record<string, Need>> = {
  'GET /api/session': viewer,
  'DELETE /api/session': viewer,
  'GET /api/access': admin,
  'POST /api/access': { ...admin, ...named },
  'DELETE /api/access/{id}': { ...admin, query: 'by' },
  'GET /api/settings': admin,
  'GET /api/status': viewer,
  'GET /api/live': viewer,
  'GET /api/overview': viewer,
  'GET /api/audit': viewer,
  'GET /api/audit/verify': viewer,

  'GET /api/trajectories': viewer,
  'GET /api/trajectories/{id}': viewer,
  'GET /api/trajectories/{id}/lineage': viewer,
  'GET /api/trajectories/{id}/scores': viewer,
  'GET /api/trajectories/{id}/verdicts': viewer,
  'POST /api/trajectories/import': operator,
  'GET /api/explore': viewer,
  'GET /api/labels': viewer,
  'POST /api/labels': operator, // a file of labels names its reviewers
  'GET /api/review': viewer,
  'POST /api/review': { role: 'reviewer', body: 'reviewer' },
  'POST /api/review/pick': operator,

  'POST /api/score/runs': operator,
  'POST /api/score/plans': viewer, // asks nobody, changes nothing
  'GET /api/score/distribution': viewer,
  'GET /api/score/what-if': viewer,
  'GET /api/score/tools': viewer,
  'GET /api/judge': viewer,
  'GET /api/reward': viewer,
  'GET /api/reward/versions': viewer,
  'GET /api/reward/compare': viewer,
  'POST /api/reward/fit': operator,

  'GET /api/datasets': viewer,
  'GET /api/datasets/{id}': viewer,
  'GET /api/datasets/{id}/check': viewer,
  'GET /api/datasets/{id}/diff': viewer,
  'GET /api/datasets/{id}/export': operator, // leaves the house
  'POST /api/datasets': { ...operator, ...named },
  'GET /api/shifts': viewer,
  'POST /api/shifts/release': { ...operator, ...named },
  'GET /api/pii': viewer,
  'GET /api/privacy': viewer,

  'GET /api/train/advice': viewer,
  'GET /api/runs': viewer,
  'GET /api/runs/{id}': viewer,
  'GET /api/runs/{id}/curves': viewer,
  'GET /api/runs/{id}/episodes': viewer,
  'POST /api/runs': { ...operator, ...named },
  'POST /api/runs/{id}/resume': operator,
  'POST /api/runs/{id}/pause': operator,
  'POST /api/runs/{id}/stop': operator,

  'POST /api/evaluations': { ...operator, ...named },
  'GET /api/evaluations/{id}': viewer,
  'GET /api/reports': viewer,
  'GET /api/reports/{id}': viewer,
  'GET /api/reports/{id}/cases': viewer,
  'GET /api/compatibility': viewer,

  'GET /api/flags': viewer,
  'POST /api/flags/{name}': { ...operator, ...named },
  'GET /api/routing': viewer,
  'GET /api/serving': viewer,
  'GET /api/releases': viewer,
  'GET /api/releases/{name}': viewer,
  'POST /api/releases': { ...operator, ...named },
  'POST /api/releases/{name}/serve': { ...operator, ...named },
  'POST /api/releases/{name}/pin': { ...operator, ...named },
  'POST /api/releases/{name}/unpin': { ...operator, ...named },
  'POST /api/kill': { ...operator, ...named },
  'POST /api/kill/undo': { ...operator, ...named },
  'POST /api/alerts': operator, // and who has the token of `alerts` in the settings
  'GET /api/rollouts': viewer,
  'GET /api/rollouts/{id}': viewer,
  'GET /api/rollouts/{id}/shadows': viewer,
  'POST /api/rollouts': { ...operator, ...named },
  'POST /api/rollouts/{id}/{move}': { ...operator, ...named },

  'GET /api/loop': viewer,
  'GET /api/loop/turns': viewer,
  'POST /api/loop/run': { ...operator, ...named },
  'POST /api/loop/pause': { ...operator, ...named },
  'POST /api/loop/resume': { ...operator, ...named },

  'GET /api/artifacts': viewer,
  'GET /api/artifacts/{reference}': viewer,
  'POST /api/artifacts/{reference}/verify': operator,
  'POST /api/artifacts/prune': operator,

  'GET /api/keys': admin,
  'POST /api/keys': { ...admin, ...named },
  'DELETE /api/keys/{id}': { ...admin, query: 'by' },
  'GET /api/consent': viewer,
  'GET /api/consent/{user}': viewer,
  'PUT /api/consent/{user}': { ...admin, query: 'by' },
  'DELETE /api/consent/{user}': { ...admin, query: 'by' },
  'GET /api/erasures': viewer,
  'GET /api/erasures/{id}': viewer,
  'POST /api/erasures': { ...admin, ...named },
  'POST /api/erasures/verify': admin,
  'GET /api/holds': viewer,
  'POST /api/holds': { ...admin, ...named },
  'DELETE /api/holds/{id}': { ...admin, query: 'by' },
  'GET /api/retention': viewer,
  'POST /api/retention': { ...admin, ...named },
};

/** Nobody needs to be known for these. */
export const open: readonly string[] = ['GET /api/openapi.json', 'POST /api/session'];

const steps = (path: string): string[] => path.split('/');
const isParam = (step: string): boolean => step.startsWith('{');

const fits = (pattern: readonly string[], path: readonly string[]): boolean =>
  pattern.length === path.length && pattern.every((step, i) => isParam(step) || step === path[i]);

const params = (pattern: readonly string[]): number => pattern.filter(isParam).length;

const compiled = Object.entries(needs)
  .map(([route, need]) => {
    const [method, path] = route.split(' ') as [string, string];
    return { method, pattern: steps(path), need };
  })
  .toSorted((a, b) => params(a.pattern) - params(b.pattern)); // words before parameters

/** What a request needs; null: it is open to all. */
export function needOf(method: string, path: string): Need | null {
  const asked = method === 'HEAD' ? 'GET' : method;
  if (open.includes(`${asked} ${path}`)) return null;
  const at = steps(path);
  return compiled.find((one) => one.method === asked && fits(one.pattern, at))?.need ?? admin;
}

/** As the table has it: `GET /api/runs/{id}`. */
export const needOfRoute = (route: string): Need | null | undefined => (open.includes(route) ? null : needs[route]);

export const listedRoutes = (): string[] => [...open, ...Object.keys(needs)];

export const may = (role: AccessRole, needed: AccessRole): boolean =>
  accessRoles.indexOf(role) >= accessRoles.indexOf(needed);
