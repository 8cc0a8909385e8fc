/** Webhooks: whom Pawl tells of what happens to releases and rollouts, and which alerts may do something to them. */
import { z } from 'zod';

const url = z.url({ protocol: /^https?$/, error: 'an http or https address' });
const secret = z.string().min(16, 'at least 16 characters').max(512);

export const hookSettings = z.strictObject({
  url: url.describe('Where it is sent, as JSON by POST.'),
  secret: secret.optional().describe('What the body is signed with: x-pawl-signature is sha256= and its HMAC in hex.'),
  events: z
    .array(
      z.string().regex(/^[a-z][a-z-]{0,63}$/, 'an event such as rollout-promoted, or how some begin, e.g. rollout-'),
    )
    .min(1)
    .max(50)
    .default(['rollout-', 'kill-switch-', 'release-served'])
    .describe('Events of the audit log that are told: by their name, or by how they begin.'),
});
export type HookSettings = Readonly<z.output<typeof hookSettings>>;

export const alertActions = ['kill', 'abort', 'hold'] as const;
export const alertSettings = z.strictObject({
  token: secret
    .regex(/^\S*$/, 'without spaces')
    .describe('What Alertmanager sends as its bearer token; it opens POST /api/alerts and nothing else.'),
  actions: z
    .array(z.enum(alertActions))
    .min(1)
    .default(['abort', 'hold'])
    .describe('What an alert with the label pawl_action may do: pull the kill switch, abort or hold the open rollout.'),
});
