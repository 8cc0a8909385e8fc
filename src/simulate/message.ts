/**
 * Chat messages in OpenAI's shape, which is what players see, what the gateway records and what chat templates render.
 * Only the fields an episode needs; ids are made by whoever writes the message.
 */
export type ToolCall = {
  readonly id: string;
  readonly type: 'function';
  /** `arguments` is JSON text, as on the wire. It comes from a model: it may be anything. */
  readonly function: { readonly name: string; readonly arguments: string };
};

export type AssistantMessage = {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
  /** What the model thought before, where it is to be shown. */
  readonly reasoning_content?: string;
};

export type Message =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string }
  | AssistantMessage
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

/** A tool as the model is told about it. */
export type ToolSpec = {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
};
