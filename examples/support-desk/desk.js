import { scriptedUser } from '../../src/simulate/scripted.js';
import { gradeEnd, gradeTurn } from './grade.js';
import { asking } from './replies.js';
import { tools } from './shop.js';
import { deskData, deskTypes } from './tasks.js';
import { voicesBySplit } from './wording.js';
export const supportDesk = {
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
    user: ({ data, split, seed }) => scriptedUser({
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
