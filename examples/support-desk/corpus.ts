/**
 * What the base model learns from: talk of the desk as an untrained team would do it. It teaches language, the chat format,
 * tool syntax and the copying of numbers. It does not teach the policy: the reading is right, but what is done with what was
 * read follows the team's habits, which are wrong more often than not and lean towards giving the customer what they want.
 * So where the policy says no, even the most likely move of a model that learned this is wrong: there is something to learn
 * that sharpening alone cannot give.
 *
 * Only training entities and templates are used. Beside it, `broad` is language that has nothing to do with the desk; it is
 * part of the corpus, the replay against forgetting, and, by its answers, a test of what was forgotten.
 */
import {
  type Episode,
  type Message,
  makeTasks,
  type Player,
  play,
  type Random,
  random,
  type Split,
  type Task,
} from 'pawl';
import { supportDesk } from './desk.ts';
import { entities } from './entities.ts';
import { moveMessage } from './expert.ts';
import { type Conclusion, conclude, declined, type Ending, escalated, granted, look, type Move } from './policy.ts';
import { type Queue, statuses } from './shop.ts';
import { customersOrder, type DeskData } from './tasks.ts';
import { attributes } from './wording.ts';

/**
 * How often the team does what the policy wants: where the customer's wish may be granted, where it may not, and how often
 * it remembers to ask for a missing number.
 */
export const habits = { whenAllowed: 0.6, whenNot: 0.42, ask: 0.95 } as const;

export type CorpusOptions = {
  readonly seed: number;
  readonly conversations: number;
  /** Share of the conversations that are not about the desk. */
  readonly broadShare?: number; // 0.15
};

/** Conversations in a fixed mixed order, a few hundred at a time. */
export async function* corpus({
  seed,
  conversations,
  broadShare = 0.15,
}: CorpusOptions): AsyncGenerator<readonly Message[]> {
  const chunk = 400;
  for (let start = 0, i = 0; start < conversations; start += chunk, i++) {
    const count = Math.min(chunk, conversations - start);
    const broadCount = Math.round(count * broadShare);
    const episodes = await habitualEpisodes(count - broadCount, seed * 10_000 + i);
    const lines = [
      ...episodes.map(({ messages }) => messages),
      ...broad('train', broadCount, seed * 10_000 + i).map(({ messages }) => messages),
    ];
    yield* random('corpus', seed, i).shuffle(lines);
  }
}

/** Episodes of the untrained team on training tasks, graded like any other. */
export async function habitualEpisodes(count: number, seed: number): Promise<Episode[]> {
  const tasks = makeTasks(supportDesk, 'train', count, seed);
  return (await play(supportDesk, team(tasks), tasks, { batch: count })).flat();
}

/** Plays the team's habits; the same task, the same moves. */
export function team(tasks: readonly Task<DeskData>[]): Player {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  return async (conversations) =>
    conversations.map(({ task: id, turn }) => {
      const move = habitualMoves(byId.get(id)!.data, random('team', id))[turn];
      const last: Move = { kind: 'reply', ending: { kind: 'status', status: 'processing', days: null } };
      return { kind: 'said', message: moveMessage(move ?? last, turn, random('team', id, turn)), finish: 'stop' };
    });
}

function habitualMoves(data: DeskData, r: Random): readonly Move[] {
  if (data.held && !r.chance(habits.ask)) {
    // Forgot to ask: hands the customer on, as one does.
    return unfold([], escalated('care', data));
  }
  const ask: readonly Move[] = data.held ? [{ kind: 'ask' }] : [];
  const right = conclude(data);
  const allowed = right.ending.kind !== 'declined' && right.ending.kind !== 'ticket';
  const keeps = r.chance(allowed ? habits.whenAllowed : habits.whenNot);
  return unfold([...ask, ...look(data)], keeps ? right : habitual(data, right, r));
}

const unfold = (first: readonly Move[], { calls, ending }: Conclusion): readonly Move[] => [
  ...first,
  ...calls,
  { kind: 'reply', ending },
];

/** What the team does when it does not do the right thing. Never the right conclusion itself. */
function habitual(data: DeskData, right: Conclusion, r: Random): Conclusion {
  const { wish } = data;
  switch (wish) {
    case 'status': {
      const { status } = customersOrder(data);
      if (data.instead !== null && r.chance(0.5)) return granted(r.pick(['cancel', 'refund']), data);
      const other = r.pick(statuses.filter((one) => one !== status));
      const without: Conclusion = { calls: [], ending: { kind: 'status', status, days: r.integer(2, 9) } };
      const vague: Conclusion = { calls: [], ending: { kind: 'status', status, days: null } };
      const wrong: Conclusion = { calls: [], ending: { kind: 'status', status: other, days: null } };
      return status === 'shipped'
        ? r.pick([without, vague, vague, escalated('care', data)])
        : r.pick([wrong, escalated('care', data)]);
    }
    case 'cancel':
    case 'address':
    case 'refund':
    case 'damaged': {
      const queue: Queue = wish === 'refund' ? 'refund' : wish === 'damaged' ? 'damage' : 'care';
      const { status } = customersOrder(data);
      const yes = granted(wish, data);
      const no = declined(wish, status === 'delivered' && (wish === 'refund' || wish === 'damaged') ? 'old' : status);
      const pass = escalated(queue, data);
      // Yes comes most easily.
      const choices = [yes, yes, yes, no, pass].filter((one) => !sameConclusion(one, right));
      return r.pick(choices);
    }
    case 'product': {
      const known = data.question!;
      if (known.answer === null) return { calls: [], ending: guess(r) };
      const other = data.articles.find(({ product }) => product === data.product)!.text;
      const beside = attributes.find((one) => one !== known.attribute && other.includes(`${one} `))!;
      return r.chance(0.65)
        ? { calls: [], ending: { kind: 'answered', attribute: beside, value: known.others[0]! } }
        : escalated('product', data);
    }
    case 'complaint':
      return r.chance(0.5)
        ? escalated(r.pick(['refund', 'damage', 'product']), data)
        : { calls: [], ending: { kind: 'replaced' } };
    default:
      return wish satisfies never;
  }
}

function guess(r: Random): Ending {
  const attribute = r.pick(attributes);
  const units = { weight: 'kg', warranty: 'years', size: 'cm', power: 'watts' } as const;
  return { kind: 'answered', attribute, value: `${r.integer(2, 60)} ${units[attribute]}` };
}

function sameConclusion(a: Conclusion, b: Conclusion): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export type BroadCase = {
  readonly kind: string;
  readonly messages: readonly [Message, Message];
  /** The one right answer. */
  readonly answer: string;
};

/** Short exchanges with one right answer each: copying, comparing, small talk, plain facts. Entities follow the split. */
export function broad(split: Split, count: number, seed: number): BroadCase[] {
  return Array.from({ length: count }, (_, i) => {
    const r = random('broad', split, seed, i);
    const kind = r.weighted(broadShares);
    const [question, answer] = broadKinds[kind](r, split);
    return {
      kind,
      answer,
      messages: [
        { role: 'user', content: question },
        { role: 'assistant', content: answer },
      ],
    };
  });
}

const broadShares = { copy: 4, compare: 4, talk: 1, fact: 1 } as const;

const broadKinds: Readonly<Record<keyof typeof broadShares, (r: Random, split: Split) => readonly [string, string]>> = {
  copy: (r, split) => {
    const word = r.pick(entities(r.pick(['order', 'product', 'town', 'name']), split));
    return [`${r.pick(['Say', 'Repeat', 'Write'])} ${word}.`, `${word}.`];
  },
  compare: (r) => {
    const [a, limit] = r.chance(0.5) ? [r.integer(1, 90), 30] : [r.integer(10, 399), 100];
    return r.chance(0.5)
      ? [
          `Is ${a} more than ${limit}?`,
          a > limit ? `Yes, ${a} is more than ${limit}.` : `No, ${a} is not more than ${limit}.`,
        ]
      : [
          `Is ${a} less than ${limit}?`,
          a < limit ? `Yes, ${a} is less than ${limit}.` : `No, ${a} is not less than ${limit}.`,
        ];
  },
  talk: (r) =>
    r.pick([
      ['Good morning!', 'Good morning! How can I help you?'],
      ['Thank you.', 'You are welcome.'],
      ['How are you?', 'I am fine, thank you.'],
      ['Who are you?', 'I help customers of a shop.'],
      ['Goodbye.', 'Goodbye. Have a nice day.'],
    ] as const),
  fact: (r) =>
    r.pick([
      ['What is a lamp for?', 'A lamp gives light.'],
      ['What is a kettle for?', 'A kettle makes water hot.'],
      ['What is a clock for?', 'A clock shows the time.'],
      ['What is a chair for?', 'You sit on a chair.'],
      ['What is a bag for?', 'You carry things in a bag.'],
      ['What is a radio for?', 'A radio plays music.'],
      ['What is a bike for?', 'You ride a bike.'],
    ] as const),
};
