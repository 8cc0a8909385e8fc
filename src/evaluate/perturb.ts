/**
 * The same case, said a little differently: what a model that learned the work does not mind, and one that learned the golden
 * cases by heart does. Pure and the same for the same case. Five kinds, which take turns over the cases:
 *
 *   casing      all in small letters
 *   typos       neighbouring letters swapped in every fifth long word
 *   wrapper     a polite sentence before and after
 *   irrelevant  a sentence about something else at the end
 *   tools       the tools in the opposite order
 *
 * Words with a digit or an @ are left alone: an order number is not a matter of style.
 */
import type { Environment } from '../simulate/environment.ts';
import { random } from '../simulate/random.ts';
import type { Case } from './case.ts';

export const perturbations = ['casing', 'typos', 'wrapper', 'irrelevant', 'tools'] as const;
export type Perturbation = (typeof perturbations)[number];

const isFact = (word: string): boolean => /[\d@]/.test(word);
const eachWord = (text: string, change: (word: string) => string): string =>
  text.replace(/\S+/g, (word) => (isFact(word) ? word : change(word)));

const wrappers = [
  ['Hello, I have a request.', 'Thank you in advance.'],
  ['Good day to you.', 'Thanks a lot.'],
  ['Hi there, hope you are well.', 'Many thanks.'],
] as const;
const asides = ['By the way, it is raining here today.', 'My cat is asleep on the sofa.', 'We are going away soon.'];
const fewestLetters = 5;

/** `id`: of the case; it decides what is drawn. */
export function perturbText(kind: Perturbation, text: string, id: string): string {
  const rng = random('perturb', kind, id);
  switch (kind) {
    case 'casing':
      return eachWord(text, (word) => word.toLowerCase());
    case 'typos': {
      let left = rng.integer(0, 2);
      return eachWord(text, (word) => {
        if (!/^\p{L}+$/u.test(word) || word.length < fewestLetters || left-- > 0) return word;
        left = 4;
        const at = rng.integer(1, word.length - 3);
        return word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2);
      });
    }
    case 'wrapper': {
      const [before, after] = rng.pick(wrappers);
      return `${before} ${text} ${after}`;
    }
    case 'irrelevant':
      return `${text} ${rng.pick(asides)}`;
    case 'tools':
      return text;
    default:
      return kind satisfies never;
  }
}

/** The last thing the user says, and the order of the tools. */
export function perturbCase(kind: Perturbation, one: Case): Case {
  const at = one.messages.findLastIndex(({ role }) => role === 'user');
  const messages = one.messages.map((message, i) =>
    i === at && message.role === 'user' && typeof message.content === 'string'
      ? { ...message, content: perturbText(kind, message.content, one.id) }
      : message,
  );
  const tools = kind === 'tools' && one.tools ? [...one.tools].reverse() : one.tools;
  return { ...one, messages, ...(tools ? { tools } : {}) };
}

/** The same world, in which users open differently; `kindOf` says how, by the task's id. */
export const perturbUsers = <Data, Database>(
  environment: Environment<Data, Database>,
  kindOf: (task: string) => Perturbation,
): Environment<Data, Database> => ({
  ...environment,
  user: (task) => {
    const user = environment.user(task);
    return { ...user, open: async () => perturbText(kindOf(task.id), await user.open(), task.id) };
  },
});

/** The same world, with its tools in the opposite order. */
export const perturbTools = <Data, Database>(
  environment: Environment<Data, Database>,
): Environment<Data, Database> => ({
  ...environment,
  tools: [...environment.tools].reverse(),
});
