/**
 * A timeline in lines for a terminal: one heading per turn, then what was new in it, labels on the left. Long texts are
 * shortened unless `full`. Everything recorded passes `plain` first (terminal.ts). Pure: the lines are returned.
 */
import { cut, oneLine, plain, type Terminal, width, wrap } from '../terminal.ts';
import { argumentsText } from './message.ts';
import { moneyText } from './price.ts';
import type { Signal } from './signal.ts';
import type { Shown, Step, Timeline } from './timeline.ts';
import type { Trajectory } from './trajectory.ts';

const labelColumns = 10;
/** What a shortened text keeps. */
const shortLines = 8;
const shortCharacters = 1200;

const grouped = (value: number): string => Math.round(value).toLocaleString('en-US');

/** 0 ms, 820 ms, 2.4 s, 3 min 5 s, 2 h 10 min, 3 d 4 h: two significant parts, never more. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const;
  const seconds = Math.round(ms / 1000);
  const first = units.findIndex(([, size]) => seconds >= size);
  const [name, size] = units[first]!;
  const rest = units[first + 1];
  const more = rest ? Math.floor((seconds % size) / rest[1]) : 0;
  return `${Math.floor(seconds / size)} ${name}${rest && more > 0 ? ` ${more} ${rest[0]}` : ''}`;
}

/** Local time to the second, in a form that sorts. */
export const clock = (at: Date | number): string => {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

/** Usage comes at the end of an answer: one that was cancelled has none, which is not 0. */
const tokens = (prompt: number | null, completion: number | null): string =>
  !prompt && !completion
    ? 'tokens unknown'
    : `${prompt === null ? '?' : grouped(prompt)} → ${completion === null ? '?' : grouped(completion)} tokens`;

export type PrintOptions = Pick<Terminal, 'columns' | 'paint'> & { readonly full: boolean };

function block(label: string, text: string, options: PrintOptions, dress: (line: string) => string = (line) => line) {
  const room = options.columns - labelColumns - 3;
  const kept = options.full ? text : text.slice(0, shortCharacters);
  let lines = wrap(plain(kept).trimEnd(), room);
  let left = text.length - kept.length;
  if (!options.full && lines.length > shortLines) {
    left += lines.slice(shortLines).reduce((sum, line) => sum + line.length + 1, 0);
    lines = lines.slice(0, shortLines);
  }
  const name = cut(oneLine(label), labelColumns);
  const indent = ' '.repeat(labelColumns + 3);
  const out = lines.map((line, i) =>
    i === 0
      ? ` ${options.paint.cyan(name)}${' '.repeat(labelColumns - width(name))}  ${dress(line)}`.trimEnd()
      : `${indent}${dress(line)}`.trimEnd(),
  );
  if (left > 0) out.push(`${indent}${options.paint.dim(`… ${grouped(left)} more characters (--full shows them)`)}`);
  return out;
}

/** A text may have more lines than a call may have arguments. */
function append(out: string[], lines: readonly string[]): void {
  for (const line of lines) out.push(line);
}

/** JSON arguments read better with spaces after the separators; anything else stays as it came. */
function argumentText(text: string, full: boolean): string {
  try {
    const value: unknown = JSON.parse(text);
    if (full) return JSON.stringify(value, null, 2);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value)
          .map(([key, item]) => `${key}: ${JSON.stringify(item)}`)
          .join(', ')
      : JSON.stringify(value);
  } catch {
    return text;
  }
}

/** Other answers than the user's: present, but not part of what happened. */
function siblingLines({ sibling, messages }: Step['siblings'][number], options: PrintOptions): string[] {
  const { paint } = options;
  const { temperature, topP, latencyMs, promptTokens, completionTokens } = sibling;
  const facts = [
    `temperature ${temperature}${topP === null ? '' : `, top_p ${topP}`}`,
    duration(latencyMs),
    tokens(promptTokens, completionTokens),
  ];
  const plainPaint = { ...options, paint: { ...paint, yellow: paint.dim, cyan: paint.dim } };
  return [
    ...block('sibling', facts.join(' · '), plainPaint, paint.dim),
    ...messages.flatMap((message) => messageLines(message, plainPaint, paint.dim)),
  ];
}

function messageLines(message: Shown, options: PrintOptions, dress?: (line: string) => string): string[] {
  const { paint, full } = options;
  const out: string[] = [];
  const role = message.role || 'unknown';
  if (message.reasoning !== '') append(out, block('thinking', message.reasoning, options, paint.dim));
  if (role === 'tool' || role === 'function')
    append(out, block('result', `${message.toolName ?? message.toolCallId ?? 'tool'} → ${message.text}`, options));
  else if (message.text !== '') append(out, block(role, message.text, options, dress));
  for (const call of message.toolCalls) {
    const given = argumentText(argumentsText(call), full);
    append(out, block('call', `${call.name || '(unnamed tool)'}(${given})`, options, paint.yellow));
  }
  if (out.length === 0) append(out, block(role, '(empty)', options, paint.dim));
  return out;
}

function signalLines(signal: Signal, options: PrintOptions): string[] {
  const { paint } = options;
  const { kind, name, value, unit, user, target } = signal;
  const votes: Readonly<Record<string, string>> = { '1': ' (up)', '0.5': ' (neutral)', '0': ' (down)' };
  const shown = value === null ? '' : ` = ${value}${kind === 'feedback' ? (votes[String(value)] ?? '') : ''}`;
  const judged = kind === 'feedback' && value !== null;
  const dress = judged && value > 0.5 ? paint.green : judged && value < 0.5 ? paint.red : undefined;
  const parts = [
    `${kind} ${name}${shown}${unit ? ` ${unit}` : ''}`,
    target.kind === 'key' ? `via ${target.id}` : '',
    user === null ? '' : `by ${user}`,
    clock(signal.at),
  ];
  return [
    ...block('signal', parts.filter((part) => part !== '').join('  '), options, dress),
    ...(signal.comment === null ? [] : block('comment', signal.comment, options)),
    ...(signal.correction === null ? [] : block('correction', signal.correction, options)),
  ];
}

/** Parts side by side, as many as fit; the lines after the first are indented. */
function pack(parts: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts.map((given) => cut(oneLine(given), columns - 3))) {
    const line = lines.at(-1);
    if (line !== undefined && width(line) + 2 + width(part) <= columns) lines[lines.length - 1] = `${line}  ${part}`;
    else lines.push(line === undefined ? part : `   ${part}`);
  }
  return lines;
}

/** What reading left out. */
/** What is known of a conversation besides its turns, and what of them is not here. */
export type Beside = {
  readonly tooLarge: readonly string[];
  readonly signalsCut: boolean;
  readonly siblingsCut?: boolean;
  /** What its tokens cost; null: nobody can say. */
  readonly money?: number | null;
};
const nothingBeside: Beside = { tooLarge: [], signalsCut: false };

function stepLines(step: Step, number: number, options: PrintOptions, tooLarge: boolean): string[] {
  const { turn } = step;
  const { paint } = options;
  const finishes = [...new Set(step.answers.map(({ choice }) => choice.finishReason ?? 'unfinished'))];
  const heading = [
    turn.startedAt === 0 ? '' : `+${duration(step.offsetMs)}`,
    turn.release,
    turn.release.endsWith(turn.model) ? '' : turn.model,
    `${duration(turn.latencyMs)}${turn.firstTokenMs === null ? '' : `, first token ${duration(turn.firstTokenMs)}`}`,
    tokens(turn.promptTokens, turn.completionTokens),
    turn.attempts > 1 ? `${turn.attempts} attempts` : '',
    finishes.join(', '),
  ].filter((part) => part !== '');
  const out = pack([`── turn ${number}`, ...heading], options.columns).map((line) => paint.bold(line));
  if (step.dropped > 0)
    append(out, block('history', `${step.dropped} earlier messages are no longer in the request`, options, paint.dim));
  if (tooLarge) append(out, block('content', 'left out: too large to read', options, paint.dim));
  for (const message of step.news) append(out, messageLines(message, options));
  for (const [i, { message }] of step.answers.entries()) {
    if (step.answers.length > 1) out.push(`   ${paint.dim(`choice ${i + 1} of ${step.answers.length}`)}`);
    append(out, messageLines(message, options));
  }
  if (turn.status !== 'ok' || turn.error !== null) {
    const status = turn.httpStatus > 0 ? ` (HTTP ${turn.httpStatus})` : '';
    append(
      out,
      block(
        turn.status === 'ok' ? 'error' : turn.status === 'disconnected' ? 'cancelled' : turn.status,
        `${turn.error ?? ''}${status}`.trim(),
        options,
        paint.red,
      ),
    );
  }
  for (const signal of step.signals) append(out, signalLines(signal, options));
  for (const sibling of step.siblings) append(out, siblingLines(sibling, options));
  return out;
}

export function timelineLines(
  trajectory: Trajectory,
  timeline: Timeline,
  options: PrintOptions,
  beside: Beside = nothingBeside,
): string[] {
  const { paint } = options;
  const facts = [
    trajectory.origin,
    `user ${trajectory.user ?? 'unknown'}`,
    `consent ${trajectory.consent}`,
    `${trajectory.turns} turn${trajectory.turns === 1 ? '' : 's'}`,
    tokens(trajectory.promptTokens, trajectory.completionTokens),
    ...(beside.money == null ? [] : [`cost ${moneyText(beside.money)}`]),
    `${duration(trajectory.latencyMs)} of waiting`,
    clock(trajectory.startedAt),
  ];
  const errors =
    trajectory.errors > 0
      ? `  ${paint.red(`${trajectory.errors} failed turn${trajectory.errors === 1 ? '' : 's'}`)}`
      : '';
  const out = [
    `${paint.bold(oneLine(trajectory.id))}  ${oneLine(trajectory.agent)}${errors}`,
    ...wrap(oneLine(facts.join(' · ')), options.columns).map((line) => paint.dim(line)),
  ];
  for (const [i, step] of timeline.steps.entries()) {
    const lines = stepLines(step, i + 1, options, beside.tooLarge.includes(step.turn.id));
    out.push('');
    append(out, lines);
  }
  if (timeline.steps.length < trajectory.turns)
    out.push('', paint.dim(`… ${grouped(trajectory.turns - timeline.steps.length)} more turns (--turns shows them)`));
  if (timeline.signals.length > 0) out.push('', paint.bold('── signals'));
  for (const signal of timeline.signals) append(out, signalLines(signal, options));
  if (beside.signalsCut) out.push('', paint.dim('… more signals, keys or comments than are shown'));
  if (beside.siblingsCut) out.push('', paint.dim('… more siblings than are shown'));
  return out;
}
