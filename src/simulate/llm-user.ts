/**
 * A user played by a language model: told who it is, what it wants and what it knows, shown real transcripts for tone
 * where there are some, and asked for one message at a time. Its words are data like any other. It must not be used where
 * episodes have to repeat exactly: a server need not honour the seed.
 *
 * The idea of an LLM on the user's side with a hidden goal is τ-bench's.
 */
import type { Spoken, User } from './environment.ts';
import type { Message } from './message.ts';
import type { Player } from './player.ts';

export type UserBrief = {
  /** Who they are and how they talk, in a sentence. */
  readonly persona: string;
  /** What they want, and when they are content. */
  readonly goal: string;
  /** What they know and may be asked for. They must invent nothing beyond it. */
  readonly facts: Readonly<Record<string, string>>;
  /** Redacted real conversations, for tone only. */
  readonly transcripts?: readonly (readonly Spoken[])[];
  readonly seed: number;
  readonly maxTokens?: number; // 120
};

const leaving = 'BYE';
const transcriptCharacters = 4000;

/** `player` answers for the user; use httpPlayer with an upstream of your choice. */
export function llmUser(brief: UserBrief, player: Player): User {
  const say = async (spoken: readonly Spoken[]): Promise<string> => {
    const [answer] = await player([
      {
        id: `user:${brief.seed}`,
        task: 'user',
        attempt: 0,
        turn: spoken.length,
        seed: brief.seed + spoken.length,
        groupSeed: brief.seed + spoken.length,
        messages: userMessages(brief, spoken),
        tools: [],
        previous: null,
        maxTokens: brief.maxTokens ?? 120,
        context: Number.MAX_SAFE_INTEGER,
      },
    ]);
    if (answer?.kind !== 'said') throw new Error(`The user's model did not answer: ${answer?.detail ?? 'no answer'}.`);
    return (answer.message.content ?? '').trim();
  };
  return {
    open: () => say([]),
    answer: async (spoken) => {
      const text = await say(spoken);
      return text === '' || text.replace(/[^A-Za-z]/g, '').toUpperCase() === leaving ? null : text;
    },
  };
}

/** What the model reads. The roles are turned around: to it, the agent is the one who speaks to it. */
export function userMessages(brief: UserBrief, spoken: readonly Spoken[]): Message[] {
  const facts = Object.entries(brief.facts).map(([name, value]) => `- ${name}: ${value}`);
  const examples = transcripts(brief.transcripts ?? []);
  const system = [
    `You play a customer who writes to a support agent. ${brief.persona}`,
    `What you want: ${brief.goal}`,
    facts.length === 0 ? '' : `What you know:\n${facts.join('\n')}`,
    'Write only your next message, in one or two sentences. Give a fact only when it is needed or asked for. Invent nothing.',
    `When your matter is settled or plainly refused, write ${leaving} and nothing else.`,
    examples === '' ? '' : `How real customers sound (for tone only):\n${examples}`,
  ];
  return [
    { role: 'system', content: system.filter((part) => part !== '').join('\n\n') },
    { role: 'user', content: 'The chat is open. Write your first message.' },
    ...spoken.map(({ who, text }): Message => ({ role: who === 'user' ? 'assistant' : 'user', content: text })),
  ];
}

function transcripts(all: readonly (readonly Spoken[])[]): string {
  const texts: string[] = [];
  let left = transcriptCharacters;
  for (const one of all) {
    const text = one.map(({ who, text }) => `${who === 'user' ? 'Customer' : 'Agent'}: ${text}`).join('\n');
    left -= text.length;
    if (left < 0) break;
    texts.push(text);
  }
  return texts.join('\n---\n');
}
