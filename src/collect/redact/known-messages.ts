/**
 * Messages that were redacted before. An agent sends its whole conversation with every call, so that most messages of a request
 * have come before, and what became of them then is what becomes of them now. The same object is returned each time, which
 * spares writing and naming it again (store/content.ts). Nothing personal stays in memory: a message that had to be changed is
 * remembered by a hash of what it was, and is used again where its placeholders have the same numbers.
 */
import { hash } from 'node:crypto';
import { createRecent } from '../recent.ts';
import { isObject, type JsonObject } from '../untrusted.ts';
import type { Find, Redaction } from './redact.ts';

type Known = { readonly message: object; readonly finds: readonly Find[] };

/** Characters of JSON; what is remembered takes about three times as many bytes. */
const MOST = 8 * 1024 * 1024;
/**
 * Where requests have what comes again, what stays the same first: numbers are given in this order. Not everywhere: what a name says
 * about its value (a password) is lost on the way.
 */
const lists = ['system', 'tools', 'messages', 'input'] as const;

export type KnownMessages = {
  /** The request, redacted; `redaction` is that of the turn. */
  redactRequest(request: Readonly<JsonObject>, redaction: Redaction): Readonly<JsonObject>;
};

const digest = (json: string): string => hash('sha256', json, 'base64');

/** `shares`: how many of them there are, for rules of their own each. */
export function createKnownMessages(shares = 1): KnownMessages {
  const known = createRecent<Known>(MOST / shares);
  const changedLengths = createRecent<true>(10_000); // most messages need no hash to be told from those that were changed

  function redactMessage(message: unknown, redaction: Redaction): unknown {
    if (!isObject(message)) return redaction.clean(message);
    const json = JSON.stringify(message);
    let found = known.get(json);
    if (found === undefined && changedLengths.get(`${json.length}`)) found = known.get(digest(json));
    if (found !== undefined && redaction.again(found.finds)) return found.message;
    const before = redaction.finds.length;
    const cleaned = redaction.clean(message);
    const isChanged = cleaned !== message;
    if (isChanged) changedLengths.set(`${json.length}`, true);
    const finds = redaction.finds.slice(before);
    // What only the words around gave away is looked for in the rest of the turn, so it has to be read again.
    if (!finds.some(({ isContextual }) => isContextual))
      known.set(isChanged ? digest(json) : json, { message: cleaned, finds }, json.length);
    return cleaned;
  }

  return {
    redactRequest(request, redaction) {
      const taken: JsonObject = {};
      let rest = request;
      for (const name of lists) {
        const list = request[name];
        if (!Array.isArray(list)) continue;
        taken[name] = list.map((message) => redactMessage(message, redaction));
        rest = { ...rest, [name]: null }; // its place is kept
      }
      return { ...redaction.clean(rest), ...taken };
    },
  };
}
