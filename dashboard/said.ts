/**
 * What was said in a turn, from any of the wire formats that are recorded: chat, completions, responses, messages. Pure, and
 * forgiving: what it does not know it hands on as data to be shown as it is.
 */
export type Said = {
  readonly role: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly input: unknown }[];
  /** Parts that are no text: pictures, files, what nobody knows. */
  readonly other: readonly unknown[];
};

type Data = Readonly<Record<string, unknown>>;
const isData = (value: unknown): value is Data => typeof value === 'object' && value !== null && !Array.isArray(value);
const asText = (value: unknown): string => (typeof value === 'string' ? value : '');
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const parsed = (text: unknown): unknown => {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

type Taken = { texts: string[]; reasoning: string[]; calls: { name: string; input: unknown }[]; other: unknown[] };

function takePart(part: unknown, into: Taken): void {
  if (typeof part === 'string') into.texts.push(part);
  else if (!isData(part)) into.other.push(part);
  else if (part.type === 'tool_use') into.calls.push({ name: asText(part.name), input: part.input });
  else if (part.type === 'thinking') into.reasoning.push(asText(part.thinking));
  else if (part.type === 'tool_result') takeContent(part.content, into);
  else if (typeof part.text === 'string') into.texts.push(part.text);
  else into.other.push(part);
}

function takeContent(content: unknown, into: Taken): void {
  if (Array.isArray(content)) for (const part of content) takePart(part, into);
  else if (content !== null && content !== undefined) takePart(content, into);
}

export function saidBy(message: unknown): Said {
  if (!isData(message)) return { role: 'unknown', text: '', reasoning: '', calls: [], other: [message] };
  const into: Taken = { texts: [], reasoning: [], calls: [], other: [] };
  takeContent(message.content, into);
  if (message.type === 'function_call')
    into.calls.push({ name: asText(message.name), input: parsed(message.arguments) });
  if (message.type === 'function_call_output') takeContent(message.output, into);
  if (message.type === 'reasoning') takeContent(message.summary, into);
  for (const call of asList(message.tool_calls)) {
    const asked = isData(call) && isData(call.function) ? call.function : null;
    if (asked === null) into.other.push(call);
    else into.calls.push({ name: asText(asked.name), input: parsed(asked.arguments) });
  }
  const reasoning = [asText(message.reasoning_content), asText(message.reasoning), ...into.reasoning];
  const isResult =
    message.type === 'function_call_output' ||
    asList(message.content).some((part) => isData(part) && part.type === 'tool_result');
  return {
    role: isResult ? 'tool' : asText(message.role) || asText(message.type) || 'message',
    text: into.texts.join('\n'),
    reasoning: reasoning.filter((text) => text !== '').join('\n'),
    calls: into.calls,
    other: into.other,
  };
}

/** All that the model was shown, in order. */
export function shownTo(request: unknown): readonly unknown[] {
  if (!isData(request)) return [];
  const system = request.system ?? request.instructions;
  const first = system === undefined || system === null ? [] : [{ role: 'system', content: system }];
  if (Array.isArray(request.messages)) return [...first, ...request.messages];
  if (Array.isArray(request.input)) return [...first, ...request.input];
  const only = request.prompt ?? request.input;
  return only === undefined ? first : [...first, { role: 'user', content: only }];
}

type Before = { readonly request: unknown; readonly answer: unknown };
type New = { readonly known: number; readonly fresh: readonly unknown[] };

const saysTheSame = (a: unknown, b: unknown): boolean => {
  const [one, other] = [saidBy(a), saidBy(b)];
  return one.text === other.text && JSON.stringify(one.calls) === JSON.stringify(other.calls);
};

/** Agents send the whole history with every call: of a turn only what the one before had not shown or said, and how much that is. */
export function newIn(request: unknown, before: Before | null): New {
  const all = shownTo(request);
  const old = shownTo(before?.request);
  let known = 0;
  while (known < Math.min(all.length, old.length) && JSON.stringify(all[known]) === JSON.stringify(old[known])) known++;
  if (known > 0 && known < all.length && saysTheSame(all[known], before?.answer)) known++;
  return { known, fresh: all.slice(known) };
}
