/**
 * The support desk as an environment: the one file a reader needs to see how the parts make a world to practise in.
 */
import { type Environment, scriptedUser } from 'pawl';
import { gradeEnd, gradeTurn } from './grade.ts';
import { asking } from './replies.ts';
import { type Shop, tools } from './shop.ts';
import { type DeskData, deskData, deskTypes } from './tasks.ts';
import { voicesBySplit } from './wording.ts';

export const supportDesk: Environment<DeskData, Shop> = {
  name: 'support-desk',
  // Short, because every token of it is read again in every episode. The policy is not in it: it is to be learned.
  system: 'You help customers of a shop.',
  types: deskTypes,
  data: deskData,
  database: ({ data }) => ({
    orders: new Map(data.orders.map((order) => [order.number, order])),
    articles: data.articles,
    ticket: data.ticket,
    effects: [],
  }),
  tools,
  user: ({ data, split, seed }) =>
    scriptedUser({
      persona: data.persona,
      seed,
      opening: data.opening,
      answers: data.number === null ? [] : [{ to: asking, say: data.number }],
      ...(data.instead === null ? {} : { instead: data.instead }),
      keep: [data.product, data.town, data.email].filter((one) => one !== null),
      voices: voicesBySplit[split],
    }),
  gradeTurn,
  gradeEnd,
  limits: {
    turns: 6,
    callsPerTurn: 1,
    mistakes: 1,
    tokensPerTurn: 48,
    tokens: 320,
    seconds: 120,
    characters: 400,
  },
};
