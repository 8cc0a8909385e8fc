/**
 * Users that follow a script: what they open with, what they say when asked, when they leave. A persona changes how they
 * say it, never what the facts are: protected words (order numbers, names) come through every persona letter by letter.
 * Deterministic in a seed and free, so tests and training on one machine can use them by the thousand; llm-user.ts is the
 * lifelike sibling.
 */
import type { Spoken, User } from './environment.ts';
import { type Random, random } from './random.ts';

/**
 * calm           says it as written
 * terse          drops greetings and politeness
 * panicked       exclaims before and after
 * repeating      says the opening twice, and repeats an answer instead of leaving when asked again
 * changes-mind   asks for something else the first time they answer (needs `Script.instead`)
 * typos          slips on a letter or two
 */
export const personas = ['calm', 'terse', 'panicked', 'repeating', 'changes-mind', 'typos'] as const;
export type Persona = (typeof personas)[number];

/** The phrases personas add. Splits that must not share wording bring their own. */
export type Voices = {
  readonly cries: readonly string[];
  readonly pleas: readonly string[];
  readonly again: readonly string[];
};

export const voices: Voices = {
  cries: ['Oh no!', 'Help!', 'This is urgent!'],
  pleas: ['Please hurry!', 'I really need this!', 'Quick!'],
  again: ['Again:', 'As I said:', 'I repeat:'],
};

export type Script = {
  readonly persona: Persona;
  readonly seed: number | string;
  readonly opening: string;
  /** What the user says when the agent's words match, in order of preference; each once, unless they repeat themselves. */
  readonly answers: readonly { readonly to: RegExp; readonly say: string }[];
  /** What a user who changes their mind asks for instead, at their first answer. */
  readonly instead?: string;
  /** Words that no persona may touch. */
  readonly keep?: readonly string[];
  readonly voices?: Voices;
};

export function scriptedUser(script: Script): User {
  const say = (text: string, label: string): string =>
    speak(script.persona, text, random(script.seed, label), script.keep ?? [], script.voices ?? voices);
  return {
    open: () => say(script.opening, 'open'),
    answer: (spoken) => {
      const heard = spoken.at(-1)?.text ?? '';
      const given = spoken.filter(({ who }) => who === 'user').length - 1;
      const rule = script.answers.findIndex(({ to }) => to.test(heard));
      if (rule < 0) return null;
      const said = timesMatched(script, spoken, rule);
      if (said > (script.persona === 'repeating' ? 2 : 1)) return null;
      const text = script.answers[rule]!.say;
      if (given === 0 && script.persona === 'changes-mind' && script.instead !== undefined) {
        return `${text} ${script.instead}`;
      }
      return say(text, `answer ${given}`);
    },
  };
}

/** How often the agent has asked for this answer, the present time included. The user keeps no state beside the talk. */
function timesMatched(script: Script, spoken: readonly Spoken[], rule: number): number {
  return spoken.filter(
    ({ who, text }) => who === 'agent' && script.answers.findIndex(({ to }) => to.test(text)) === rule,
  ).length;
}

/** A text in a persona's voice. */
export function speak(
  persona: Persona,
  text: string,
  rng: Random,
  keep: readonly string[] = [],
  phrases: Voices = voices,
): string {
  switch (persona) {
    case 'calm':
    case 'changes-mind':
      return text;
    case 'terse':
      return terse(text);
    case 'panicked':
      return rng.chance(0.5) ? `${rng.pick(phrases.cries)} ${text}` : `${text} ${rng.pick(phrases.pleas)}`;
    case 'repeating':
      return `${text} ${rng.pick(phrases.again)} ${terse(text)}`;
    case 'typos':
      return slip(text, rng, keep);
    default:
      return persona satisfies never;
  }
}

const polite =
  /^(hi|hello|hey|good (morning|day|evening))( there)?[,.!]? |\b(please|kindly|thanks|thank you)\b[,.!]? ?/gi;

function terse(text: string): string {
  const short = text
    .replace(polite, '')
    .replace(/\s*[,]\s*([.!?]|$)/g, '$1')
    .trim();
  return short === '' ? text : short.charAt(0).toUpperCase() + short.slice(1);
}

/** One or two slips in words of five letters or more: two letters swapped, or one left out. */
function slip(text: string, rng: Random, keep: readonly string[]): string {
  const guarded = new Set(keep.flatMap((phrase) => words(phrase.toLowerCase())));
  const pieces = text.split(/([A-Za-z]+)/);
  const open = pieces.flatMap((piece, i) =>
    /^[a-z]{5,}$/i.test(piece) && !guarded.has(piece.toLowerCase()) ? [i] : [],
  );
  for (const i of rng.shuffle(open).slice(0, rng.integer(1, 2))) {
    const word = pieces[i]!;
    const at = rng.integer(1, word.length - 3);
    pieces[i] = rng.chance(0.5)
      ? word.slice(0, at) + word[at + 1]! + word[at]! + word.slice(at + 2)
      : word.slice(0, at) + word.slice(at + 1);
  }
  return pieces.join('');
}

const words = (text: string): string[] => text.split(/[^a-z]+/).filter((word) => word !== '');
