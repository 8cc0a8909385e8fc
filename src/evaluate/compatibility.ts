/**
 * Whether a release fits where it is to serve, before anybody is routed to it: the same server, the same path, a few calls of the
 * kinds that the agent makes. It says nothing about how good the answers are. Pure: what the probes found comes in
 * (probe.ts), a verdict for each check goes out. What was not asked for is not checked; what could not be told is unmeasured.
 */
import { z } from 'zod';
import type { Gate } from './gates/gate.ts';
import { type Verdict, verdicts } from './verdict.ts';

export const compatibilitySettings = z.strictObject({
  contextTokens: z.int().min(16).max(10_000_000).optional().meta({
    unit: 'tokens',
    description: 'A prompt about this long must be taken. Without it: the longest that the agent’s traffic used.',
  }),
  tools: z
    .boolean()
    .optional()
    .describe(
      'Tool calls must come back readable, and their results be taken. Without it: whether the agent’s traffic offered tools.',
    ),
  structured: z
    .boolean()
    .optional()
    .describe(
      'An answer asked for by a JSON Schema (response_format) must be JSON that fits it. Without it: whether the agent’s traffic asked for such.',
    ),
  load: z.int().min(1).max(256).optional().meta({
    unit: 'requests',
    description:
      'Requests at the same time while latency and memory are measured. Without it: as many as in the busiest minute of the agent’s traffic, 4 to 64.',
  }),
  seconds: z.number().positive().max(3600).optional().meta({
    unit: 'seconds',
    description:
      'The slowest answer under that load may take this long. Without it: 30, unless what serves takes longer too.',
  }),
  metrics: z
    .url()
    .optional()
    .describe(
      'The server’s Prometheus page (vLLM’s /metrics), which must say how full its cache gets under the load. Without it: /metrics beside the upstream’s address, where there is one.',
    ),
  memory: z
    .number()
    .gt(0)
    .max(1)
    .default(0.95)
    .meta({ unit: 'share', description: 'How full the server’s cache, or its memory, may get.' }),
  goodForSeconds: z.number().min(0).max(31_536_000).default(86_400).meta({
    unit: 'seconds',
    description: 'So long a check that was passed is good for what begins to serve.',
  }),
});
export type CompatibilitySettings = Readonly<z.output<typeof compatibilitySettings>>;

/** What an agent's traffic of late used of the server (store/used.ts). */
export type Used = {
  readonly calls: number;
  /** Of those, chat completions: the only kind that is checked. */
  readonly chats: number;
  /** The longest prompt with its answer; null: no server said. */
  readonly contextTokens: number | null;
  /** In the mean, of a prompt and of an answer; null: no server said. */
  readonly promptTokens: number | null;
  readonly answerTokens: number | null;
  readonly tools: boolean;
  readonly structured: boolean;
  /** Calls at the same time, in the mean of the busiest minute. */
  readonly load: number;
};

const leastLoad = 4;
const mostLoad = 64;
const usualSeconds = 30;

export const checkNames = ['template', 'context', 'tools', 'structured', 'latency', 'memory'] as const;
export type CheckName = (typeof checkNames)[number];

/** What one check asks for: what the settings say, and where they say nothing, what the traffic used. */
export const needsSchema = z.strictObject({
  contextTokens: z.int().nullable(),
  tools: z.boolean(),
  structured: z.boolean(),
  load: z.int(),
  /** How long the prompts and the answers of the load are; null, and in older records: a few words. */
  promptTokens: z.int().nullable().default(null),
  answerTokens: z.int().nullable().default(null),
  seconds: z.number(),
  metrics: z.string().nullable(),
  memory: z.number(),
  /** Checks that what serves now is the measure of: nobody asked for more than what users have. */
  derived: z.array(z.enum(checkNames)),
});
export type Needs = Readonly<z.infer<typeof needsSchema>>;

export function needsOf(
  settings: CompatibilitySettings,
  used: Used,
  { metrics = null }: { readonly metrics?: string | null } = {},
): Needs {
  const { contextTokens, tools, structured, load, seconds, memory } = settings;
  const { promptTokens, answerTokens } = used;
  const measured = used.contextTokens === null ? null : Math.max(16, used.contextTokens);
  return {
    contextTokens: contextTokens ?? measured,
    tools: tools ?? used.tools,
    structured: structured ?? used.structured,
    load: load ?? Math.min(mostLoad, Math.max(leastLoad, Math.ceil(used.load))),
    metrics: settings.metrics ?? metrics,
    ...{ promptTokens, answerTokens, seconds: seconds ?? usualSeconds, memory },
    derived: [
      'template',
      ...(seconds === undefined ? (['latency'] as const) : []),
      ...(settings.metrics === undefined ? (['memory'] as const) : []),
      ...(contextTokens === undefined ? (['context'] as const) : []),
      ...(tools === undefined ? (['tools'] as const) : []),
      ...(structured === undefined ? (['structured'] as const) : []),
    ],
  };
}

/** Longer prompts than any before come every day; a check of nearly as long a one is still good. */
const nearly = 0.8;

/** Whether what was checked is what is needed now. */
export const covers = (checked: Needs, needs: Needs): boolean =>
  (checked.contextTokens ?? 0) >= nearly * (needs.contextTokens ?? 0) &&
  (checked.tools || !needs.tools) &&
  (checked.structured || !needs.structured) &&
  checked.load >= nearly * needs.load &&
  (checked.promptTokens ?? 0) >= nearly * (needs.promptTokens ?? 0) &&
  checked.seconds <= needs.seconds &&
  checked.memory <= needs.memory;

/** In words, for whoever waits for it. */
export const needsInWords = ({ contextTokens, tools, structured, load, promptTokens = null }: Needs): string =>
  [
    'several turns',
    ...(contextTokens === null ? [] : [`a context of ${contextTokens} tokens`]),
    ...(tools ? ['tools'] : []),
    ...(structured ? ['structured output'] : []),
    `${load} requests${promptTokens === null ? '' : ` of ${promptTokens} tokens`} at a time`,
  ].join(', ');

export const compatibilitySchema = z.strictObject({
  agent: z.string(),
  release: z.string(),
  verdict: z.enum(verdicts),
  checks: z.array(z.strictObject({ name: z.enum(checkNames), verdict: z.enum(verdicts), reason: z.string() })),
  /** What was asked for, and of which server; records from before these were kept have neither. */
  needs: needsSchema.optional(),
  server: z.string().optional(),
  at: z.number(), // ms since epoch
});
export type Compatibility = Readonly<z.infer<typeof compatibilitySchema>>;

/** One call: what the server answered, or why it did not. `status` 0: no answer at all. */
export type Probe = {
  readonly status: number;
  readonly detail: string;
  readonly content: string;
  /** It thought aloud: an answer is on its way, though its content may still be empty. */
  readonly thought: boolean;
  /** It ended because the tokens it was given were used up. */
  readonly isCut: boolean;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly promptTokens: number | null;
  /** How full its memory was when it answered, 0–1, where the server says so. */
  readonly full: number | null;
  readonly milliseconds: number;
};

export type Probed = {
  readonly template: Probe;
  readonly context: Probe | null;
  readonly tools: { readonly call: Probe; readonly after: Probe | null } | null;
  readonly structured: Probe | null;
  /** Empty: not asked, for the first call already came to nothing. */
  readonly load: readonly Probe[];
  /** Fullest that the server's cache or memory was seen under the load, 0–1; null: it does not say. */
  readonly full: number | null;
};

type Check = Compatibility['checks'][number];

const objectIn = (text: string): object | null => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
};

/** By the schema that was asked for: a town, and nothing else. */
const isTown = (text: string): boolean => {
  const value = objectIn(text);
  return (
    value !== null && Object.keys(value).join() === 'town' && typeof (value as { town: unknown }).town === 'string'
  );
};

/** The call as models write it before their server has read it: whole, and read by nobody. What is no call is only a poor answer. */
const unreadCall = /"name"\s*:\s*"get_weather"|<function=get_weather>|\bget_weather\(\s*\w+\s*=/;

/** A call the server refuses does not fit; one it could not take just now says nothing. */
const refused = ({ status }: Probe): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429;
const broke = ({ status }: Probe): boolean => status !== 200 && !refused({ status } as Probe);

const isAnswer = ({ content, thought, toolCalls }: Probe): boolean => content !== '' || thought || toolCalls.length > 0;

function taken(name: CheckName, probe: Probe, holds: boolean, good: string, bad: string): Check {
  if (refused(probe))
    return { name, verdict: 'fail', reason: `The server refuses it (${probe.status}): ${probe.detail}` };
  if (broke(probe)) return { name, verdict: 'unmeasured', reason: `No answer: ${probe.detail || probe.status}.` };
  return holds ? { name, verdict: 'pass', reason: good } : { name, verdict: 'fail', reason: bad };
}

export function judgeCompatibility(probed: Probed, needs: Needs): Pick<Compatibility, 'verdict' | 'checks'> {
  const { template, context, tools, structured, load, full } = probed;
  const checks: Check[] = [
    taken(
      ...([
        'template',
        template,
        [template, ...load].some(isAnswer), // one may be empty by chance
      ] as const),
      'A system message and several turns are taken and answered.',
      `A conversation of several turns gets an empty answer, ${1 + load.length} times of ${1 + load.length}.`,
    ),
  ];
  const contextTokens = needs.contextTokens ?? 0;
  if (context !== null && refused(context))
    checks.push({
      ...{ name: 'context', verdict: 'fail' },
      reason: `A context of ${contextTokens} tokens is needed, and the server refuses such a prompt (${context.status}): ${context.detail}`,
    });
  else if (context !== null)
    checks.push(
      taken(
        ...(['context', context, context.promptTokens === null || context.promptTokens >= contextTokens / 2] as const),
        `A prompt of ${context.promptTokens ?? `about ${contextTokens}`} tokens is taken.`,
        `The server saw only ${context.promptTokens} tokens of a prompt of about ${contextTokens}: it cuts what is too long.`,
      ),
    );
  if (tools !== null) {
    const { call, after } = tools;
    const known = call.toolCalls.find(({ name }) => name === 'get_weather');
    const broken = call.toolCalls.find((made) => objectIn(made.arguments || '{}') === null);
    if (call.status === 200 && !call.isCut && broken !== undefined)
      checks.push({
        ...{ name: 'tools', verdict: 'fail' },
        reason: `A tool call comes back with arguments that are no JSON: ${broken.arguments.slice(0, 80)}`,
      });
    else if (call.status === 200 && call.toolCalls.length === 0 && unreadCall.test(call.content))
      checks.push({
        ...{ name: 'tools', verdict: 'fail' },
        reason: `A tool call comes back as text, which the server did not read: ${call.content.slice(0, 80)}`,
      });
    // A model that learned its own tools by heart calls those; its server reads and takes calls all the same.
    else if (call.status === 200 && known === undefined && (after === null || !refused(after)))
      checks.push({
        ...{ name: 'tools', verdict: 'inconclusive' },
        reason: `It was offered one tool and asked to use it, and ${call.toolCalls.length > 0 ? `called ${call.toolCalls[0]!.name}` : 'answered in words'}.`,
      });
    else if (call.status !== 200 || after === null) checks.push(taken('tools', call, false, '', 'No call came back.'));
    else checks.push(taken('tools', after, true, 'A tool call comes back readable, and its result is taken.', ''));
  }
  if (structured !== null && structured.status === 200 && structured.isCut && !isTown(structured.content))
    checks.push({
      ...{ name: 'structured', verdict: 'inconclusive' },
      reason: 'The answer by a JSON Schema was still going on when its tokens were used up.',
    });
  else if (structured !== null)
    checks.push(
      taken(
        ...(['structured', structured, isTown(structured.content)] as const),
        'An answer by a JSON Schema is JSON that fits it.',
        `An answer asked for by a JSON Schema is none: ${structured.content.slice(0, 80)}`,
      ),
    );
  const failed = load.filter(({ status }) => status !== 200);
  const slowest = Math.max(0, ...load.map(({ milliseconds }) => milliseconds)) / 1000;
  checks.push(
    load.length === 0
      ? { name: 'latency', verdict: 'unmeasured', reason: 'Not asked for: the first call already came to nothing.' }
      : failed.length > 0
        ? {
            ...{ name: 'latency', verdict: 'fail' },
            reason: `${failed.length} of ${load.length} requests, ${needs.load} at a time, got no answer: ${failed[0]!.detail || failed[0]!.status}.`,
          }
        : {
            ...{ name: 'latency', verdict: slowest <= needs.seconds ? 'pass' : 'fail' },
            reason: `The slowest of ${load.length} answers, ${needs.load} at a time, took ${slowest.toFixed(2)} s; ${needs.seconds} s are allowed.`,
          },
  );
  checks.push(
    full === null
      ? { name: 'memory', verdict: 'unmeasured', reason: 'The server does not say how full its memory is.' }
      : {
          ...{ name: 'memory', verdict: full <= needs.memory ? 'pass' : 'fail' },
          reason: `The server was ${(full * 100).toFixed(0)}% full under the load; ${needs.memory * 100}% is allowed.`,
        },
  );
  return { verdict: worst(checks, needs), checks };
}

/**
 * Where the need was only read from the traffic, what serves now is the measure: what it fails as well, users do without already. Its
 * own failures, and what the settings ask for, hold the release up.
 */
export function besideServing(
  found: Pick<Compatibility, 'verdict' | 'checks'>,
  needs: Needs,
  serving: Pick<Compatibility, 'checks'>,
): Pick<Compatibility, 'verdict' | 'checks'> {
  // A conversation that is refused, and not merely answered with nothing, is no conversation with either of them.
  const isAnswered = found.checks.some(({ name, verdict }) => name === 'latency' && verdict !== 'unmeasured');
  const checks = found.checks.map((check) =>
    check.verdict === 'fail' &&
    (check.name !== 'template' || isAnswered) &&
    needs.derived.includes(check.name) &&
    serving.checks.some(({ name, verdict }) => name === check.name && verdict === 'fail')
      ? { ...check, verdict: 'inconclusive' as const, reason: `${check.reason} What serves now fails this too.` }
      : check,
  );
  return { checks, verdict: worst(checks, needs) };
}

/** A failure outweighs everything; memory that nobody tells holds nothing up, unless the settings say where it is told. */
function worst(checks: readonly Check[], { derived }: Needs): Verdict {
  const counted = checks.filter(
    ({ name, verdict }) => !(name === 'memory' && verdict === 'unmeasured' && derived.includes('memory')),
  );
  for (const verdict of ['fail', 'unmeasured', 'inconclusive'] as const)
    if (counted.some((check) => check.verdict === verdict)) return verdict;
  return 'pass';
}

/** As the report shows it among its gates. A check that could not be made asks a person: it was asked for. */
export function compatibilityGate({ verdict, checks }: Pick<Compatibility, 'verdict' | 'checks'>): Gate {
  const passed = checks.filter((check) => check.verdict === 'pass').length;
  const rest = checks.filter((check) => check.verdict !== 'pass');
  return {
    name: 'compatibility',
    verdict: verdict === 'unmeasured' ? 'inconclusive' : verdict,
    baseline: null,
    candidate: passed,
    limit: checks.length,
    reason: `${passed} of ${checks.length} checks of where it is to serve hold.${rest.map(({ name, reason }) => ` ${name}: ${reason}`).join('')}`,
    look: [],
  };
}
