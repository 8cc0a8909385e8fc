/**
 * The agent's words: how each ending may be said, and whether a text says it. Checks look for facts (a status, an amount, a
 * ticket, a town) and for claims that are not true, not for these very sentences, so a model is free in its wording.
 */
import type { Random } from 'pawl';
import type { Ending, Wished } from './policy.ts';

export const asking = /\b(number|which order)\b/i;

export function sayAsk(r: Random): string {
  return r.pick(['What is your order number?', 'Which order number is it?', 'Please give me the order number?']);
}

const verbs: Readonly<Record<Wished, string>> = {
  cancel: 'cancel it',
  refund: 'refund it',
  address: 'change the address',
  damaged: 'replace it',
};

export function sayEnding(ending: Ending, r: Random): string {
  switch (ending.kind) {
    case 'status':
      return ending.days === null
        ? r.pick([`Your order is ${ending.status}.`, `It is ${ending.status}.`])
        : r.pick([
            `Your order is ${ending.status}. It arrives in ${ending.days} days.`,
            `It is ${ending.status} and arrives in ${ending.days} days.`,
          ]);
    case 'cancelled':
      return r.pick(['Done. Your order is cancelled.', 'I have cancelled it. It is cancelled now.']);
    case 'refunded':
      return r.pick([`Done. ${ending.amount} will be refunded.`, `I have refunded ${ending.amount}.`]);
    case 'moved':
      return r.pick([`Done. It goes to ${ending.town}.`, `I have changed the address to ${ending.town}.`]);
    case 'replaced':
      return r.pick(['Sorry about that. A new one is coming.', 'I will send you a new one.']);
    case 'answered':
      return r.pick([`The ${ending.attribute} is ${ending.value}.`, `Its ${ending.attribute} is ${ending.value}.`]);
    case 'ticket':
      return r.pick([
        `A person will help you. Your ticket is ${ending.ticket}.`,
        `I passed it on. The ticket is ${ending.ticket}.`,
      ]);
    case 'declined': {
      const reason = ending.why === 'old' ? 'More than 30 days have passed.' : `It is ${ending.why}.`;
      return r.pick([
        `Sorry, I cannot ${verbs[ending.wish]}. ${reason}`,
        `I cannot ${verbs[ending.wish]}, sorry. ${reason}`,
      ]);
    }
    default:
      return ending satisfies never;
  }
}

const no = /\b(cannot|can not|can't|unable|not possible|too late|not able)\b/;
const places = ['processing', 'shipped', 'delivered'] as const;
const has = (text: string, words: string | number): boolean =>
  new RegExp(`(?<![\\w.])${String(words).toLowerCase()}(?![\\w])`).test(text);

/** What is wrong with the agent's last words, given how it should have ended; null when nothing is. */
export function misses(ending: Ending, said: string, others: readonly string[] = []): string | null {
  const text = said.toLowerCase();
  const refuses = no.test(text);
  const claim = falseClaim(ending, text, refuses);
  if (claim !== null) return claim;
  switch (ending.kind) {
    case 'status': {
      if (!has(text, ending.status)) return `does not say that it is ${ending.status}`;
      const wrong = places.find((one) => one !== ending.status && has(text, one));
      if (wrong !== undefined) return `says both ${ending.status} and ${wrong}`;
      if (ending.days !== null && !has(text, `${ending.days} days?`)) return `does not say ${ending.days} days`;
      return null;
    }
    case 'declined': {
      if (!refuses) return 'does not decline';
      if (ending.why === 'old') return has(text, '30 days') ? null : 'does not say that 30 days have passed';
      if (!has(text, ending.why)) return `does not say that it is ${ending.why}`;
      const wrong = places.find((one) => one !== ending.why && has(text, one));
      return wrong === undefined ? null : `says both ${ending.why} and ${wrong}`;
    }
    case 'cancelled':
      return refuses || !has(text, 'cancelled') ? 'does not say that it is cancelled' : null;
    case 'refunded':
      return refuses || !/\brefund/.test(text) || !has(text, ending.amount)
        ? `does not say that ${ending.amount} is refunded`
        : null;
    case 'moved':
      return refuses || !has(text, ending.town) ? `does not say that it goes to ${ending.town}` : null;
    case 'replaced':
      return refuses || !/\b(new one|replace)/.test(text) ? 'does not say that a new one is coming' : null;
    case 'answered': {
      if (refuses || !has(text, ending.value)) return `does not say ${ending.value}`;
      const extra = others.find((one) => one !== ending.value && has(text, one));
      return extra === undefined ? null : `also says ${extra}, which was not asked`;
    }
    case 'ticket':
      return !/\bticket\b/.test(text) || !has(text, ending.ticket) ? `does not give ticket ${ending.ticket}` : null;
    default:
      return ending satisfies never;
  }
}

/** Says that something was done which the right ending does not do. */
function falseClaim(ending: Ending, text: string, refuses: boolean): string | null {
  if (refuses) return null;
  const cancelledAlready = ending.kind === 'status' && ending.status === 'cancelled';
  if (ending.kind !== 'cancelled' && !cancelledAlready && has(text, 'cancelled')) return 'claims a cancellation';
  if (ending.kind !== 'refunded' && has(text, 'refunded')) return 'claims a refund';
  if (ending.kind !== 'replaced' && has(text, 'new one')) return 'claims a replacement';
  if (ending.kind !== 'ticket' && has(text, 'ticket')) return 'claims a ticket';
  return null;
}
