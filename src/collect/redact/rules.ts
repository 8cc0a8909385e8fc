/**
 * What is looked for in an agent's traffic, what is let be, and what becomes of each kind: the built-in recognizers, those of the
 * settings, the allow-list and the policies, put together once. It also remembers which texts and names had nothing in them,
 * which is only true under the same rules.
 */
import { createRecent, type Recent } from '../recent.ts';
import { card } from './card.ts';
import { email } from './email.ts';
import { numbers } from './numbers.ts';
import { type Policy, plainValue } from './placeholder.ts';
import { recognizer } from './recognizer.ts';
import type { Redactor, Span } from './redactor.ts';
import { secret } from './secret.ts';
import type { SecretName } from './secret-name.ts';
import type { PiiSettings } from './settings.ts';

/** Secrets first: where a secret and an address overlap (a password before '@host'), the earlier start decides. */
export const redactors: readonly Redactor[] = [secret, email, card, numbers];

export type KeyRead = { readonly name: string; readonly holds: SecretName; readonly context: string | null };

export type Rules = {
  readonly redactors: readonly Redactor[];
  /** Whether the found value is one that may stay. */
  readonly allows: (value: string, span: Span) => boolean;
  readonly policyOf: (kind: string) => Policy;
  /** What values are hashed with. */
  readonly key: string;
  /** Long texts in which nothing was found. */
  readonly unchanged: Recent<true>;
  readonly plainKeys: Recent<KeyRead>;
  /** Names of models, releases and the like in which nothing was found: there are few, and each comes with every turn. */
  readonly plainNames: Recent<true>;
  /** Texts that are shorter hold nothing that is looked for. */
  readonly shortest: number;
};

/**
 * An agent's instructions come with every call and a conversation is sent whole with every turn, so most of what arrives has been
 * looked at before, and comparing is several times cheaper than looking.
 */
const REMEMBERED = 8 * 1024 * 1024; // characters

export type RulesOptions = {
  readonly settings?: PiiSettings;
  readonly key?: string;
  /** Found besides: named entities, where they are wanted. */
  readonly also?: readonly Redactor[];
  /** How many rules share the memory. */
  readonly shares?: number;
};

/** Resident numbers may not be kept in Korea, whoever agrees. */
const never: Readonly<Record<string, Policy>> = { 'kr-rrn': 'never', 'kr-frn': 'never' };

export function createRules({ settings, key = '', also = [], shares = 1 }: RulesOptions = {}): Rules {
  const own = (settings?.recognizers ?? []).map(recognizer);
  const policies = new Map<string, Policy>(Object.entries({ ...never, ...settings?.policy }));
  const domains = (settings?.allow ?? []).filter((one) => one.startsWith('@')).map((one) => one.toLowerCase());
  const values = new Set((settings?.allow ?? []).filter((one) => !one.startsWith('@')).map(plainValue));
  return {
    redactors: own.length + also.length === 0 ? redactors : [...redactors, ...own, ...also],
    allows: (value, { kind }) => {
      if (values.size + domains.length === 0) return false;
      const plain = plainValue(value);
      return values.has(plain) || (kind === 'email' && domains.some((domain) => plain.endsWith(domain)));
    },
    policyOf: (kind) => policies.get(kind) ?? 'mask',
    key,
    unchanged: createRecent<true>(REMEMBERED / shares),
    plainKeys: createRecent<KeyRead>(2000),
    plainNames: createRecent<true>(200),
    shortest: own.length + also.length === 0 ? 6 : 2,
  };
}

export const ordinaryRules: Rules = createRules();
