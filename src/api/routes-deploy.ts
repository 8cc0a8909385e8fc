/** /api/releases and /api/rollouts: what answers, what is on its way, and the moves a person can make. */
import { createRoute } from '@hono/zod-openapi';
import { typedUser } from '../collect/person.ts';
import { agentOf } from '../config.ts';
import { adapterState } from '../deploy/adapter-state.ts';
import { alertsBody, askedBy, obey } from '../deploy/alerts.ts';
import { beginRollout, sayOf } from '../deploy/begin.ts';
import { type Fit, type FitAgent, type FitAsked, mustBeKnown, mustFit } from '../deploy/fit.ts';
import { pullKillSwitch, releaseKillSwitch } from '../deploy/kill.ts';
import { type Pinned, pin, unpin } from '../deploy/pin.ts';
import { readCard, readCardYaml } from '../deploy/read-card.ts';
import { look, serveRelease } from '../deploy/reconcile.ts';
import { findRelease, registerRelease } from '../deploy/register.ts';
import type { Release } from '../deploy/release.ts';
import { type Rollout, usualReason, weightOf } from '../deploy/rollout.ts';
import { BoundaryError, ConfigError, ConflictError, NotFoundError, RequestError, StoreError } from '../errors.ts';
import { compatibilitySchema } from '../evaluate/compatibility.ts';
import { withDoor } from '../evaluate/door.ts';
import { readCompatibility } from '../store/compatibility.ts';
import { listPins } from '../store/pins.ts';
import { listReleases, readKilled, readRelease, servingRelease } from '../store/releases.ts';
import { listRollouts, readRollout } from '../store/rollouts.ts';
import type { ApiParts } from './api.ts';
import { body, createRouter, json, problem, refusals, security } from './declare.ts';
import * as shape from './schema-deploy.ts';

const missing = problem('There is nothing of that name.');
const conflict = problem('It cannot be done as things stand; the message says what stands in the way.');

const releasesRoute = createRoute({
  method: 'get',
  path: '/api/releases',
  summary: 'List releases, newest first',
  security,
  request: { query: shape.listQuery },
  responses: { 200: json(shape.releasesShape, 'The releases.'), ...refusals },
});
const makeReleaseRoute = createRoute({
  method: 'post',
  path: '/api/releases',
  summary:
    'Register a release: a checkpoint, an adapter that an upstream loads, or a model at an upstream. The same again gives the same one',
  security,
  request: { body: body(shape.newReleaseBody) },
  responses: { 201: json(shape.releaseShape, 'The release.'), 404: missing, 409: conflict, ...refusals },
});
const releaseRoute = createRoute({
  method: 'get',
  path: '/api/releases/{name}',
  summary: 'One release, with its model card',
  security,
  request: { params: shape.releaseParam, query: shape.releaseQuery },
  responses: { 200: json(shape.oneReleaseShape, 'The release.'), 404: missing, ...refusals },
});
const servingRoute = createRoute({
  method: 'get',
  path: '/api/serving',
  summary: 'What answers an agent’s traffic, whether the kill switch is pulled, and who is pinned to which release',
  security,
  request: { query: shape.releaseQuery },
  responses: { 200: json(shape.servingShape, 'What answers.'), 404: missing, ...refusals },
});
const serveRoute = createRoute({
  method: 'post',
  path: '/api/releases/{name}/serve',
  summary: 'Let a release answer all of its agent’s traffic at once; also the way back after a promotion',
  security,
  request: { params: shape.releaseParam, body: body(shape.serveBody, false) },
  responses: { 200: json(shape.servedShape, 'It serves.'), 404: missing, 409: conflict, ...refusals },
});
const killRoute = createRoute({
  method: 'post',
  path: '/api/kill',
  summary:
    'Kill switch: one release answers all of an agent’s traffic at once, and no rollout begins until /api/kill/undo',
  security,
  request: { body: body(shape.killBody) },
  responses: { 200: json(shape.killedShape, 'It is pulled.'), 404: missing, 409: conflict, ...refusals },
});
const reviveRoute = createRoute({
  method: 'post',
  path: '/api/kill/undo',
  summary: 'Let rollouts of an agent begin again; what answers stays',
  security,
  request: { body: body(shape.reviveBody) },
  responses: { 200: json(shape.revivedShape, 'It is released.'), 404: missing, ...refusals },
});
const alertsRoute = createRoute({
  method: 'post',
  path: '/api/alerts',
  summary: 'What Alertmanager sends: firing alerts with the labels pawl_action and agent do what the settings allow',
  security,
  request: { body: body(alertsBody) },
  responses: { 200: json(shape.obeyedShape, 'What was done.'), ...refusals },
});
const pinRoute = createRoute({
  method: 'post',
  path: '/api/releases/{name}/pin',
  summary: 'Pin a client key or a user to a release',
  security,
  request: { params: shape.releaseParam, body: body(shape.pinBody) },
  responses: { 200: json(shape.pinShape, 'It is pinned.'), 404: missing, 409: conflict, ...refusals },
});
const unpinRoute = createRoute({
  method: 'post',
  path: '/api/releases/{name}/unpin',
  summary: 'Let a pinned client key or user go',
  security,
  request: { params: shape.releaseParam, body: body(shape.unpinBody) },
  responses: { 200: json(shape.pinShape, 'It is pinned no more.'), 404: missing, ...refusals },
});
const rolloutsRoute = createRoute({
  method: 'get',
  path: '/api/rollouts',
  summary: 'List rollouts, newest first',
  security,
  request: { query: shape.listQuery },
  responses: { 200: json(shape.rolloutsShape, 'The rollouts.'), ...refusals },
});
const startRoute = createRoute({
  method: 'post',
  path: '/api/rollouts',
  summary: 'Bring a release to the users step by step, as the agent’s deploy settings say',
  security,
  request: { body: body(shape.startBody) },
  responses: { 201: json(shape.rolloutShape, 'The rollout.'), 404: missing, 409: conflict, ...refusals },
});
const rolloutRoute = createRoute({
  method: 'get',
  path: '/api/rollouts/{id}',
  summary: 'One rollout: where it is, what is measured, what follows',
  security,
  request: { params: shape.rolloutParam },
  responses: { 200: json(shape.oneRolloutShape, 'The rollout.'), 404: missing, ...refusals },
});
const moveRoute = createRoute({
  method: 'post',
  path: '/api/rollouts/{id}/{move}',
  summary:
    'What a person can do with a rollout: approve lets it go on, hold keeps it where it is, promote and abort end it at once. The id of a report that waits may be approved too: its rollout begins',
  security,
  request: { params: shape.moveParam, body: body(shape.moveBody, false) },
  responses: { 200: json(shape.rolloutShape, 'The rollout.'), 404: missing, 409: conflict, ...refusals },
});

const noGateway = async (): Promise<string> => {
  throw new BoundaryError('This process knows no gateway.');
};

/** Whoever has the admin token and gives no name. */
const nobodyNamed = 'admin';

const iso = (at: number): string => new Date(at).toISOString();
const isoOrNull = (at: number | null): string | null => (at === null ? null : iso(at));

const wireRelease = (release: Release & { readonly serving: boolean }) => ({
  ...release,
  createdAt: iso(release.createdAt),
});

export function deployRoutes({
  store,
  artifacts,
  config,
  secret,
  gatewayUrl,
}: Pick<ApiParts, 'store' | 'artifacts' | 'config' | 'secret' | 'gatewayUrl'>) {
  type Who = { readonly key?: string | undefined; readonly user?: string | undefined; readonly hashed: boolean };
  const pinnedFrom = ({ key, user, hashed }: Who): Pinned => {
    if ((key === undefined) === (user === undefined))
      throw new RequestError(400, 'invalid_request', 'Give key or user, one of the two.');
    return key === undefined ? { kind: 'user', value: typedUser(user!, secret, hashed) } : { kind: 'key', value: key };
  };
  const agentCalled = (name: string | undefined) => {
    try {
      return agentOf(config, name);
    } catch (error) {
      if (error instanceof ConfigError) throw new NotFoundError(error.message);
      throw error;
    }
  };
  const fitFor =
    (asked: FitAsked) =>
    (agent: FitAgent): Fit =>
    (release) =>
      mustFit(
        {
          ...{ store, upstreams: config.upstreams },
          async withDoor(use) {
            try {
              const url = await (gatewayUrl ?? noGateway)();
              return await withDoor(store, { agent: agent.name, url }, use);
            } catch (error) {
              if (!(error instanceof BoundaryError) || error instanceof StoreError || error instanceof ConflictError)
                throw error;
              throw new ConflictError(
                `Whether release ${release.name} fits its server could not be asked: ${error.message} \`unfit\` lets it through all the same.`,
                { cause: error },
              );
            }
          },
        },
        agent,
        release,
        asked,
      );
  const withServing = async (release: Release) => ({
    ...release,
    serving: (await servingRelease(store, release.agent))?.id === release.id,
  });
  const wireRollout = async (rollout: Rollout) => {
    const { id, agent, report, phase, step, settings, reasons } = rollout;
    const name = async (release: string) => (await readRelease(store, { id: release }))!.name;
    return {
      ...{ id, agent, report, phase, step, steps: settings.steps, share: weightOf(rollout), reasons: [...reasons] },
      baseline: await name(rollout.baseline),
      candidate: await name(rollout.candidate),
      createdAt: iso(rollout.createdAt),
      startedAt: isoOrNull(rollout.startedAt),
      stepSince: isoOrNull(rollout.stepSince),
      endedAt: isoOrNull(rollout.endedAt),
    };
  };

  return createRouter()
    .openapi(releasesRoute, async (c) => {
      const releases = await listReleases(store, c.req.valid('query'));
      return c.json({ releases: releases.map(wireRelease) }, 200);
    })
    .openapi(makeReleaseRoute, async (c) => {
      const { by = nobodyNamed, ...given } = c.req.valid('json');
      const asked = { ...given, agent: agentCalled(given.agent).name };
      const release = await registerRelease({ store, artifacts }, config, asked, by, Date.now());
      return c.json(wireRelease(await withServing(release)), 201);
    })
    .openapi(releaseRoute, async (c) => {
      const { name } = c.req.valid('param');
      const release = await findRelease(store, agentCalled(c.req.valid('query').agent).name, name);
      const card = await readCard(store, release);
      const cardYaml = await readCardYaml(store, release);
      const adapter = await adapterState(config.upstreams, release);
      const compatibility = await readCompatibility(store, { agent: release.agent, release: name });
      const parentName =
        release.parent === null ? null : ((await readRelease(store, { id: release.parent }))?.name ?? null);
      const about = { parentName, compatibility: compatibility && compatibilitySchema.parse(compatibility), adapter };
      return c.json({ release: wireRelease(await withServing(release)), ...about, card, cardYaml }, 200);
    })
    .openapi(servingRoute, async (c) => {
      const { name: agent } = agentCalled(c.req.valid('query').agent);
      const [serving, killed, pins] = await Promise.all([
        servingRelease(store, agent),
        readKilled(store, agent),
        listPins(store, agent),
      ]);
      const names = new Map<string, string>();
      for (const { release } of pins)
        if (!names.has(release)) names.set(release, (await readRelease(store, { id: release }))!.name);
      return c.json(
        {
          ...{ agent, release: serving?.name ?? null },
          killed: killed && { ...killed, at: iso(killed.at) },
          pins: pins.map(({ kind, value, release, by, at }) => ({
            ...{ kind, value, release: names.get(release)!, by, at: iso(at) },
          })),
        },
        200,
      );
    })
    .openapi(serveRoute, async (c) => {
      const { agent, by = nobodyNamed, reason, aliases, unfit } = c.req.valid('json');
      const of = agentCalled(agent);
      const release = await findRelease(store, of.name, c.req.valid('param').name);
      await fitFor({ actor: by, way: 'serve', unfit })(of)(release);
      const how = { ...(reason === undefined ? {} : { reason }), ...(aliases === undefined ? {} : { aliases }) };
      const changed = await serveRelease(store, release, by, Date.now(), how);
      return c.json({ release: wireRelease({ ...release, serving: true }), changed }, 200);
    })
    .openapi(killRoute, async (c) => {
      const { agent, to, by: actor = nobodyNamed, reason = 'No reason was given.', unfit } = c.req.valid('json');
      const of = agentCalled(agent);
      const { name } = of;
      const target = to === undefined ? undefined : await findRelease(store, name, to);
      if (target !== undefined) await mustBeKnown(store, of, target, { actor, way: 'kill', unfit });
      const pulled = await pullKillSwitch(store, { agent: name, to: target, actor, reason }, Date.now());
      const { release, before, aborted } = pulled;
      return c.json({ agent: name, release: release.name, before: before.name, aborted }, 200);
    })
    .openapi(reviveRoute, async (c) => {
      const { agent, by: actor = nobodyNamed, reason = 'No reason was given.' } = c.req.valid('json');
      const { name } = agentCalled(agent);
      await releaseKillSwitch(store, { agent: name, actor, reason }, Date.now());
      return c.json({ agent: name }, 200);
    })
    .openapi(alertsRoute, async (c) => {
      const alerts = c.req.valid('json');
      const agents = config.agents.map(({ name }) => name);
      let done = 0;
      for (const asked of askedBy(alerts, agents, config.alerts?.actions ?? []))
        if (await obey(store, asked, Date.now())) done++;
      return c.json({ done, ignored: alerts.alerts.length - done }, 200);
    })
    .openapi(pinRoute, async (c) => {
      const { agent, by = nobodyNamed, unfit, ...asked } = c.req.valid('json');
      const of = agentCalled(agent);
      const release = await findRelease(store, of.name, c.req.valid('param').name);
      const who = pinnedFrom(asked);
      await fitFor({ actor: by, way: 'pin', unfit })(of)(release);
      await pin(store, release, who, by, Date.now());
      return c.json({ agent: release.agent, ...who, release: release.name }, 200);
    })
    .openapi(unpinRoute, async (c) => {
      const { agent, by = nobodyNamed, ...asked } = c.req.valid('json');
      const release = await findRelease(store, agentCalled(agent).name, c.req.valid('param').name);
      const who = pinnedFrom(asked);
      await unpin(store, release.agent, who, by, Date.now());
      return c.json({ agent: release.agent, ...who, release: null }, 200);
    })
    .openapi(rolloutsRoute, async (c) => {
      const rollouts = await listRollouts(store, c.req.valid('query'));
      return c.json({ rollouts: await Promise.all(rollouts.map(wireRollout)) }, 200);
    })
    .openapi(startRoute, async (c) => {
      const { agent, by = nobodyNamed, unfit, ...asked } = c.req.valid('json');
      const of = agentCalled(agent);
      const fit = fitFor({ actor: by, way: 'rollout', unfit })(of);
      const rollout = await beginRollout(store, of, { ...asked, actor: by }, fit, Date.now());
      return c.json(await wireRollout(rollout), 201);
    })
    .openapi(rolloutRoute, async (c) => {
      const { id } = c.req.valid('param');
      const rollout = await readRollout(store, id);
      if (rollout === null)
        throw new NotFoundError(`There is no rollout ${id}; GET /api/rollouts lists those that exist.`);
      const { measurements, decision } = await look(store, rollout, Date.now());
      const { kind, reasons, checks } = decision;
      return c.json(
        {
          rollout: await wireRollout(rollout),
          measurements: { ...measurements },
          decision: { kind, reasons: [...reasons], checks: [...checks] },
        },
        200,
      );
    })
    .openapi(moveRoute, async (c) => {
      const { id, move } = c.req.valid('param');
      const { by = nobodyNamed, reason, unfit } = c.req.valid('json');
      const why = reason ?? (move === 'promote' ? null : usualReason[move]);
      if (why === null)
        throw new RequestError(
          400,
          'invalid_request',
          'reason: say why; a promotion by hand waits for no measurement.',
        );
      const fitOf = fitFor({ actor: by, way: move, unfit });
      const rollout = await sayOf(store, config.agents, id, { move, actor: by, reason: why }, fitOf, Date.now());
      return c.json(await wireRollout(rollout), 200);
    });
}
