/**
 * Messages and tools → the tokens a model was trained to continue, through the checkpoint's own chat template (Jinja).
 *
 * Control tokens come from the template alone. What people and tools wrote must not be able to end a turn or forge one
 * by containing `<|im_end|>`, so before rendering every string is guarded: a noncharacter that occurs nowhere in the
 * request is put inside each control word it spells, and at an end where it could complete one together with the
 * template. After rendering, whatever still spells a control word was written by the template and becomes that token;
 * everything between is freed of the marks and encoded as plain text. Where no control words occur this is exactly
 * what Hugging Face's apply_chat_template followed by tokenization gives.
 */
import { Template } from '@huggingface/jinja';
import { EngineError, RequestError } from '../errors.ts';
import type { Tokenizer } from './tokenizer.ts';

export type ToolCall = {
  readonly id?: string;
  readonly type?: 'function';
  readonly function: { readonly name: string /** JSON. */; readonly arguments: string };
};

export type ChatMessage = {
  readonly role: string;
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
  readonly name?: string;
};

export type ChatTool = {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: unknown };
};

export type ChatOptions = {
  readonly tools?: readonly ChatTool[];
  /** Ends with the start of the assistant's turn. Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Variables of the template, e.g. enable_thinking. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** More than this cannot fit whoever reads it, and is refused before it is made tokens. */
  readonly mostCharacters?: number;
};

export type EncodedChat = {
  readonly tokens: number[];
  /** The prompt leaves the model inside `<think>`: what it writes first is reasoning. */
  readonly inReasoning: boolean;
};

export type Chat = {
  encode(messages: readonly ChatMessage[], options?: ChatOptions): EncodedChat;
  /** The template shows an assistant's tool calls as JSON and nothing around it, so that is how the model will call. */
  readonly bareCalls: boolean;
};

/**
 * For models of our own: Qwen's turns and Hermes tool calls. Unlike Qwen3's it keeps the reasoning of earlier turns, so
 * each prompt extends the one before it token by token, and a conversation is one training sequence.
 */
export const defaultChatTemplate = `{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- '# Tools\\n' }}
{%- for tool in tools %}{{- (tool.function if tool.function is defined else tool) | tojson }}{{- '\\n' }}{%- endfor %}
{{- 'Answer, or call tools: <tool_call>\\n{"name": NAME, "arguments": {...}}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{%- if message.content or not loop.first %}{{- '\\n' }}{%- endif %}
{{- '<tool_call>\\n{"name": ' + (call.function.name | tojson) + ', "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
`;

/** What the template above takes for granted. */
const defaultControls = ['<|im_start|>', '<|im_end|>'];

/**
 * The template of a checkpoint's files: chat_template.jinja, else tokenizer_config.json's. A folder without one gets ours if
 * its tokenizer has the control tokens of it; a model that never saw them has no template at all.
 */
export function chatTemplateOf(files: ReadonlyMap<string, Uint8Array>, tokenizer: Tokenizer): string | undefined {
  return (
    ownTemplate(files) ??
    (defaultControls.every((word) => tokenizer.controls.has(word)) ? defaultChatTemplate : undefined)
  );
}

function ownTemplate(files: ReadonlyMap<string, Uint8Array>): string | undefined {
  const jinja = files.get('chat_template.jinja');
  if (jinja) return Buffer.from(jinja).toString('utf8');
  const config = files.get('tokenizer_config.json');
  if (!config) return undefined;
  const { chat_template: template } = JSON.parse(Buffer.from(config).toString('utf8')) as { chat_template?: unknown };
  if (typeof template === 'string') return template;
  if (!Array.isArray(template)) return undefined;
  // Several named templates: the one called default.
  const found = template.find((entry) => (entry as { name?: unknown } | null)?.name === 'default');
  const text = (found as { template?: unknown } | undefined)?.template;
  return typeof text === 'string' ? text : undefined;
}

const maxDepth = 64;

export function createChat(tokenizer: Tokenizer, template: string): Chat {
  let jinja: Template;
  try {
    jinja = new Template(template);
  } catch (cause) {
    throw new EngineError(`The chat template cannot be parsed: ${(cause as Error).message}`, { cause });
  }
  const words = [...tokenizer.controls.keys()].filter((word) => word !== '').sort((a, b) => b.length - a.length);
  const pattern = words.length === 0 ? undefined : new RegExp(`(${words.map(escapeRegExp).join('|')})`, 'g');

  let bare: boolean | undefined;
  const chat: Chat = {
    get bareCalls() {
      bare ??= showsBareCalls(chat, tokenizer);
      return bare;
    },
    encode(messages, options = {}) {
      const { tools = [], addGenerationPrompt = true, variables = {} } = options;
      const shown = messages.map(templateMessage);
      const mark = unusedMark([shown, tools, variables]);
      const guard = (text: string) => guardText(text, pattern, words, mark);
      let rendered: string;
      try {
        rendered = jinja.render({
          ...tokenizer.named,
          ...(guardValue(variables, guard, 0) as object),
          messages: guardValue(shown, guard, 0),
          tools: tools.length === 0 ? null : guardValue(tools, guard, 0),
          add_generation_prompt: addGenerationPrompt,
        });
      } catch (cause) {
        if (cause instanceof RequestError) throw cause;
        throw new RequestError(
          400,
          'chat_template_error',
          `The chat template refused these messages: ${(cause as Error).message}`,
        );
      }
      checkCharacters(rendered.length, options.mostCharacters);
      return {
        tokens: encodeRendered(tokenizer, rendered, pattern, mark),
        inReasoning: addGenerationPrompt && rendered.trimEnd().endsWith('<think>'),
      };
    },
  };
  return chat;
}

const probe: ChatTool = { type: 'function', function: { name: 'probe', description: 'x', parameters: {} } };

/** What the template makes of a call. Its tools have a description behind the name, so the two cannot be mixed up. */
function showsBareCalls(chat: Chat, tokenizer: Tokenizer): boolean {
  const call: ToolCall = { id: 'call_0', type: 'function', function: { name: 'probe', arguments: '{"a":"b"}' } };
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', tool_calls: [call] },
  ];
  try {
    const { tokens } = chat.encode(messages, { tools: [probe], addGenerationPrompt: false });
    const text = tokenizer.decode(tokens, { skipSpecial: false });
    return /\{\s*"name":\s*"probe",\s*"(?:parameters|arguments)":/.test(text) && !text.includes('<tool_call>');
  } catch (error) {
    if (error instanceof RequestError) return false; // a template that takes no calls
    throw error;
  }
}

/** As templates expect it: text in every message, arguments as an object, reasoning apart from the answer. */
function templateMessage(message: ChatMessage): Record<string, unknown> {
  const { tool_calls: calls, ...rest } = message;
  const content = message.content ?? '';
  const thought =
    message.role === 'assistant' && message.reasoning_content == null
      ? /^\s*<think>\n?([\s\S]*?)\n?<\/think>\n*([\s\S]*)$/.exec(content)
      : null;
  return {
    ...rest,
    content: thought ? thought[2] : content,
    ...(thought ? { reasoning_content: thought[1] } : {}),
    ...(calls && calls.length > 0
      ? {
          tool_calls: calls.map((call) => ({
            ...call,
            function: { ...call.function, arguments: parsed(call.function.arguments) },
          })),
        }
      : {}),
  };
}

function parsed(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? value : json;
  } catch {
    return json; // what the model once wrote is shown to it as it was
  }
}

/** A text with more characters than any that fits. To make tokens of megabytes takes seconds, in which nobody else is answered. */
export function checkCharacters(length: number, most = Number.POSITIVE_INFINITY): void {
  if (length <= most) return;
  throw new RequestError(
    400,
    'context_length_exceeded',
    `The prompt has ${length} characters; what fits the model's context has at most ${most}.`,
  );
}

/** One of Unicode's 32 noncharacters, which text has no use for; a request that holds them all is not text. */
function unusedMark(values: readonly unknown[]): string {
  const used = new Set<string>();
  for (const value of values) findNoncharacters(value, used, 0);
  for (let code = 0xfdd0; code <= 0xfdef; code++) {
    const mark = String.fromCharCode(code);
    if (!used.has(mark)) return mark;
  }
  throw new RequestError(
    400,
    'invalid_text',
    'The messages contain all of the Unicode noncharacters U+FDD0 to U+FDEF.',
  );
}

function findNoncharacters(value: unknown, found: Set<string>, depth: number): void {
  checkDepth(depth);
  if (typeof value === 'string') for (const [mark] of value.matchAll(/[\ufdd0-\ufdef]/g)) found.add(mark);
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) for (const item of value) findNoncharacters(item, found, depth + 1);
  else
    for (const [key, item] of Object.entries(value)) {
      findNoncharacters(key, found, depth);
      findNoncharacters(item, found, depth + 1);
    }
}

function checkDepth(depth: number): void {
  if (depth <= maxDepth) return;
  throw new RequestError(400, 'too_deep', `The messages or tools nest more than ${maxDepth} levels deep.`);
}

function guardText(text: string, pattern: RegExp | undefined, words: readonly string[], mark: string): string {
  if (pattern === undefined || text === '') return text;
  // Inside a replaced word another may begin (<<|im_end|>): replace until none is left.
  let guarded = text;
  while (guarded.search(pattern) !== -1) guarded = guarded.replace(pattern, (word) => word[0] + mark + word.slice(1));
  const opens = words.some((word) => overlap(guarded, word));
  const closes = words.some((word) => overlap(word, guarded));
  return (closes ? mark : '') + guarded + (opens ? mark : '');
}

/** Whether an end of `a` is a proper beginning of `b`, or lies whole inside it. */
function overlap(a: string, b: string): boolean {
  if (a.length < b.length && b.includes(a)) return true;
  for (let n = Math.min(a.length, b.length - 1); n > 0; n--) if (a.endsWith(b.slice(0, n))) return true;
  return false;
}

function guardValue(value: unknown, guard: (text: string) => string, depth: number): unknown {
  checkDepth(depth);
  if (typeof value === 'string') return guard(value);
  if (Array.isArray(value)) return value.map((item) => guardValue(item, guard, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      // Templates look things up by name and compare roles and types: such plain words stay as they are.
      isWord(key) ? key : guard(key),
      (key === 'role' || key === 'type') && isWord(item) ? item : guardValue(item, guard, depth + 1),
    ]),
  );
}

const isWord = (value: unknown) => typeof value === 'string' && /^\w{1,64}$/.test(value);

function encodeRendered(tokenizer: Tokenizer, rendered: string, pattern: RegExp | undefined, mark: string): number[] {
  const pieces = pattern === undefined ? [rendered] : rendered.split(pattern);
  const tokens: number[] = [];
  for (const [i, piece] of pieces.entries()) {
    const control = i % 2 === 1 ? tokenizer.controls.get(piece) : undefined;
    if (control) {
      tokens.push(control.id);
      continue;
    }
    let text = piece.replaceAll(mark, '');
    if (tokenizer.controls.get(pieces[i - 1] ?? '')?.rstrip) text = text.trimStart();
    if (tokenizer.controls.get(pieces[i + 1] ?? '')?.lstrip) text = text.trimEnd();
    for (const token of tokenizer.encodePlain(text)) tokens.push(token);
  }
  return tokens;
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
