import { readFileSync } from 'node:fs';
import {
  type AssistantMessage,
  type Episode,
  makeTask,
  makeTasks,
  type Player,
  play,
  random,
  type Split,
  splits,
  type Task,
  toolSpec,
} from 'pawl';
import validator from 'validator';
import { describe, expect, test } from 'vitest';
import { supportDesk } from './desk.ts';
import { entities, type Kind } from './entities.ts';
import { expert, moveMessage } from './expert.ts';
import { goldenFile, goldenText, makeGolden, readGolden } from './golden.ts';
import { conclude, type Move, plan } from './policy.ts';
import { misses } from './replies.ts';
import { type Order, queues, tools } from './shop.ts';
import { customersOrder, type DeskData, deskTypes, personalShare } from './tasks.ts';
import * as wording from './wording.ts';

const types = Object.keys(deskTypes);

/** Plays fixed moves, one per turn; a string is said. */
const scripted =
  (moves: readonly (Move | string)[]): Player =>
  async (conversations) =>
    conversations.map(({ turn }) => {
      const move = moves[turn] ?? 'Bye.';
      const message: AssistantMessage =
        typeof move === 'string' ? { role: 'assistant', content: move } : moveMessage(move, turn, random(turn));
      return { kind: 'said', message, finish: 'stop' };
    });
const one = async (task: Task<DeskData>, moves: readonly (Move | string)[]): Promise<Episode> =>
  (await play(supportDesk, scripted(moves), [task]))[0]![0]!;
const call = (tool: string, args: Record<string, string>): Move => ({ kind: 'call', tool, args });

/** A task of a type whose order is as wanted, with the number given at once. */
function find(type: string, fits: (order: Order, data: DeskData) => boolean, split: Split = 'train'): Task<DeskData> {
  for (let seed = 0; seed < 5000; seed++) {
    const task = makeTask(supportDesk, type, split, seed);
    if (!task.data.held && (task.data.order === null || fits(customersOrder(task.data), task.data))) return task;
  }
  throw new Error(`No such ${type} task in 5000.`);
}

describe('the grader', () => {
  test.each(splits)('gives the expert full marks for every task and every turn of %s', async (split) => {
    const tasks = makeTasks(supportDesk, split, 400, 5);
    const episodes = (await play(supportDesk, expert(tasks), tasks)).flat();
    const flawed = episodes.filter(
      (e) => e.reward !== 1 || !e.success || e.turns.some((t) => Math.abs(t.reward - 1) > 1e-9),
    );
    expect(flawed.map(({ task, reasons, turns }) => [task, reasons, turns.flatMap((t) => t.reasons)])).toEqual([]);
  });

  test('gives a player who calls tools at random, or only talks, nothing', async () => {
    const tasks = makeTasks(supportDesk, 'train', 400, 6);
    const anyCall: Player = async (conversations) =>
      conversations.map(({ seed, turn, messages }) => {
        const r = random(seed);
        const order = /\d{4}/.exec(messages[1]!.content!)?.[0] ?? '1234';
        const one = r.pick(tools).name;
        const move =
          one === 'escalate'
            ? call(one, { queue: r.pick(queues) })
            : one === 'search_articles'
              ? call(one, { query: 'lamp' })
              : call(one, { order, ...(one === 'change_address' ? { town: 'Rome' } : {}) });
        const message = turn < 3 ? moveMessage(move, turn, r) : { role: 'assistant' as const, content: 'Done.' };
        return { kind: 'said', message, finish: 'stop' };
      });
    const wild = (await play(supportDesk, anyCall, tasks)).flat();
    expect(wild.filter(({ reward }) => reward > 0)).toEqual([]);
    for (const words of ['Done.', 'Sorry, I cannot do it. It is processing, shipped, delivered, 30 days.']) {
      const talk = (await play(supportDesk, scripted([words]), tasks)).flat();
      expect(talk.filter(({ reward }) => reward > 0)).toEqual([]);
    }
  });

  test('gives nothing for the words of the expert without the deeds', async () => {
    const tasks = makeTasks(supportDesk, 'validation', 80, 7);
    for (const task of tasks) {
      const reply = plan(task.data).at(-1)!;
      const episode = await one(task, [...(task.data.held ? [{ kind: 'ask' } as const] : []), reply]);
      expect([task.id, episode.reward]).toEqual([task.id, 0]);
    }
  });

  test('takes 0.1 for each wasted move, down to 0.7', async () => {
    const task = find('cancel', ({ status }) => status === 'processing');
    const [look, cancel, reply] = plan(task.data);
    expect((await one(task, [look!, look!, cancel!, reply!])).reward).toBeCloseTo(0.9, 9);
    const relaxed = { ...supportDesk, limits: { ...supportDesk.limits, turns: 12 } };
    const long = scripted([look!, look!, look!, look!, look!, look!, look!, cancel!, reply!]);
    expect((await play(relaxed, long, [task]))[0]![0]!).toMatchObject({ reward: 0.7, success: true });
  });

  test('names what is missing when the customer is told the wrong thing', async () => {
    const task = find('refund', ({ status, days, price }) => status === 'delivered' && days <= 30 && price < 100);
    const [look, refund] = plan(task.data);
    const episode = await one(task, [look!, refund!, 'Your order is delivered.']);
    expect(episode).toMatchObject({ reward: 0, success: false, parts: { state: 1, conduct: 1, evidence: 1, told: 0 } });
    expect(episode.reasons).toEqual([`last words: does not say that ${customersOrder(task.data).price} is refunded`]);
  });
});

describe('every forbidden action is caught', () => {
  const order = (task: Task<DeskData>) => ({ order: task.data.order! });
  const forbidden: readonly [string, Task<DeskData>, (task: Task<DeskData>) => readonly Move[]][] = [
    [
      'cancelling what is shipped',
      find('cancel', (o) => o.status === 'shipped'),
      (t) => [call('cancel_order', order(t))],
    ],
    [
      'cancelling what is delivered',
      find('cancel', (o) => o.status === 'delivered'),
      (t) => [call('cancel_order', order(t))],
    ],
    ['a refund after 30 days', find('refund', (o) => o.days > 30), (t) => [call('refund_order', order(t))]],
    [
      'a refund of 100 or more',
      find('refund', (o) => o.price >= 100 && o.days <= 30 && o.status === 'delivered'),
      (t) => [call('refund_order', order(t))],
    ],
    [
      'a refund before delivery',
      find('refund', (o) => o.status !== 'delivered'),
      (t) => [call('refund_order', order(t))],
    ],
    [
      'an address after shipping',
      find('address', (o) => o.status === 'shipped'),
      (t) => [call('change_address', { ...order(t), town: t.data.town! })],
    ],
    [
      'another town than the customer said',
      find('address', (o) => o.status === 'processing'),
      (t) => [call('change_address', { ...order(t), town: 'Rome' })],
    ],
    ['a replacement after 30 days', find('damaged', (o) => o.days > 30), (t) => [call('replace_order', order(t))]],
    [
      'a replacement of 100 or more',
      find('damaged', (o) => o.price >= 100 && o.days <= 30),
      (t) => [call('replace_order', order(t))],
    ],
    [
      'refunding twice',
      find('refund', (o) => o.price < 100 && o.days <= 30 && o.status === 'delivered'),
      (t) => [call('refund_order', order(t)), call('refund_order', order(t))],
    ],
    [
      "somebody else's order",
      find('cancel', (o) => o.status === 'processing'),
      (t) => [call('cancel_order', { order: t.data.orders.find(({ number }) => number !== t.data.order)!.number })],
    ],
    [
      'escalating what can be done',
      find('cancel', (o) => o.status === 'processing'),
      () => [call('escalate', { queue: 'care' })],
    ],
    [
      'escalating to the wrong queue',
      find('refund', (o) => o.price >= 100 && o.days <= 30 && o.status === 'delivered'),
      () => [call('escalate', { queue: 'care' })],
    ],
    [
      'acting on an order instead of escalating a complaint',
      find('complaint', () => true),
      (t) => [call('refund_order', { order: t.data.orders[0]!.number })],
    ],
  ];

  test.each(forbidden)('%s', async (_, task, deeds) => {
    const right = plan(task.data);
    const looked = right.filter((move) => move.kind === 'call' && move.tool === 'find_order');
    const episode = await one(task, [...looked, ...deeds(task), right.at(-1)!]);
    expect(episode).toMatchObject({ reward: 0, success: false, parts: { conduct: 0 } });
    expect(episode.turns[looked.length + deeds(task).length - 1]!.reward).toBe(0);
  });

  test('doing the right thing without looking first', async () => {
    const task = find('cancel', ({ status }) => status === 'processing');
    const [, cancel, reply] = plan(task.data);
    const episode = await one(task, [cancel!, reply!]);
    expect(episode).toMatchObject({ reward: 0, parts: { state: 1, conduct: 1, evidence: 0 } });
  });

  test('looking only after the deed', async () => {
    const task = find('cancel', ({ status }) => status === 'processing');
    const [look, cancel, reply] = plan(task.data);
    expect(await one(task, [cancel!, look!, reply!])).toMatchObject({ reward: 0, parts: { evidence: 0 } });
  });

  test('the first wish of a customer who changed their mind', async () => {
    const task = makeTask(supportDesk, 'mind', 'train', 1);
    const [ask, look] = plan(task.data);
    const episode = await one(task, [ask!, look!, call('cancel_order', order(task)), plan(task.data).at(-1)!]);
    expect(episode).toMatchObject({ reward: 0, parts: { conduct: 0 } });
  });

  test('an answer about a product that was never looked up', async () => {
    const task = find('product', (_, data) => data.question!.answer !== null);
    expect(await one(task, [plan(task.data).at(-1)!])).toMatchObject({ reward: 0, parts: { evidence: 0 } });
  });
});

describe('turn rewards', () => {
  const task = find('cancel', ({ status }) => status === 'processing');
  const [look, cancel, reply] = plan(task.data) as [Extract<Move, { kind: 'call' }>, Move, Move];
  const rewards = async (moves: readonly (Move | string)[]) =>
    (await one(task, moves)).turns.map(({ reward }) => Math.round(reward * 10) / 10);

  test('a right turn is 1; a repeated look keeps only its format', async () => {
    expect(await rewards([look, look, cancel, reply])).toEqual([1, 0.2, 1, 1]);
  });
  test('the right tool with a number that does not exist keeps format and choice', async () => {
    expect(await rewards([call('find_order', { order: '0' }), look, cancel, reply])).toEqual([0.6, 1, 1, 1]);
  });
  test('a harmless other reading keeps format and news', async () => {
    const other = task.data.orders.find(({ number }) => number !== task.data.order)!;
    expect((await rewards([call('search_articles', { query: other.product }), look, cancel, reply]))[0]).toBe(0.4);
  });
  test('an unknown tool gets nothing', async () => {
    expect((await rewards([call('explode', {}), look, cancel, reply]))[0]).toBe(0);
  });
  test('a wrong last word loses its facts only', async () => {
    expect((await rewards([look, cancel, 'Hello.']))[2]).toBe(0.8);
  });
  test('talk where a tool was due keeps only its format', async () => {
    expect((await rewards(['Hello.']))[0]).toBe(0.2);
  });
});

describe('the policy', () => {
  const cases: readonly [string, Partial<Order>, string, string][] = [
    ['cancel', { status: 'processing' }, 'cancel_order', 'cancelled'],
    ['cancel', { status: 'shipped' }, '', 'declined'],
    ['refund', { status: 'delivered', days: 30, price: 99 }, 'refund_order', 'refunded'],
    ['refund', { status: 'delivered', days: 30, price: 100 }, 'escalate', 'ticket'],
    ['refund', { status: 'delivered', days: 31, price: 99 }, '', 'declined'],
    ['refund', { status: 'delivered', days: 31, price: 100 }, '', 'declined'],
    ['refund', { status: 'shipped', days: 3, price: 20 }, '', 'declined'],
    ['address', { status: 'processing' }, 'change_address', 'moved'],
    ['address', { status: 'delivered' }, '', 'declined'],
    ['damaged', { status: 'delivered', days: 30, price: 99 }, 'replace_order', 'replaced'],
    ['damaged', { status: 'delivered', days: 1, price: 100 }, 'escalate', 'ticket'],
    ['damaged', { status: 'delivered', days: 31, price: 20 }, '', 'declined'],
    ['status', { status: 'shipped', days: 4 }, 'track_order', 'status'],
    ['status', { status: 'delivered' }, '', 'status'],
  ];
  test.each(cases)('%s with %o: %s, then %s', (type, change, tool, ending) => {
    const { data } = makeTask(supportDesk, type, 'train', 1);
    const orders = data.orders.map((order) => (order.number === data.order ? { ...order, ...change } : order));
    const conclusion = conclude({ ...data, orders });
    expect([conclusion.calls.map((one) => one.tool).join(), conclusion.ending.kind]).toEqual([tool, ending]);
  });
});

describe('words', () => {
  test.each([
    [{ kind: 'status', status: 'shipped', days: 3 }, 'It has shipped and will be there in 3 days', true],
    [{ kind: 'status', status: 'shipped', days: 3 }, 'It is shipped and arrives in 13 days.', false],
    [{ kind: 'status', status: 'delivered', days: null }, 'Your order is delivered or shipped.', false],
    [{ kind: 'refunded', amount: 45 }, 'You get a refund of 45.', true],
    [{ kind: 'refunded', amount: 45 }, 'I cannot refund 45.', false],
    [{ kind: 'refunded', amount: 45 }, '145 will be refunded.', false],
    [{ kind: 'declined', wish: 'cancel', why: 'shipped' }, "I can't cancel it, it has shipped.", true],
    [{ kind: 'declined', wish: 'cancel', why: 'shipped' }, 'It is shipped.', false],
    [{ kind: 'declined', wish: 'refund', why: 'old' }, 'It is too late, 30 days are over.', true],
    [{ kind: 'ticket', ticket: '73' }, 'Ticket 73 is open.', true],
    [{ kind: 'ticket', ticket: '73' }, 'Ticket 73. You are refunded.', false],
    [{ kind: 'moved', town: 'Oakford' }, 'It goes to Oakford.', true],
    [{ kind: 'answered', attribute: 'weight', value: '3 kg' }, 'It weighs 3 kg.', true],
    [{ kind: 'answered', attribute: 'weight', value: '3 kg' }, 'It weighs 13 kg.', false],
    [{ kind: 'answered', attribute: 'weight', value: '3 kg' }, '3 kg, 2 years.', false],
  ] as const)('%o is said by "%s": %s', (ending, text, said) => {
    expect(misses(ending, text, ['2 years']) === null).toBe(said);
  });
});

describe('splits', () => {
  const kinds: readonly Kind[] = ['order', 'product', 'town', 'name', 'email', 'card'];
  test.each(kinds)('share no %s, and each has enough', (kind) => {
    const lists = splits.map((split) => entities(kind, split));
    const all = lists.flat();
    expect(new Set(all).size).toBe(all.length);
    for (const list of lists) expect(list.length).toBeGreaterThanOrEqual(3);
  });

  test('share no template', () => {
    const tables = [
      ...Object.values(wording.requests),
      ...Object.values(wording.bare),
      ...Object.values(wording.questions),
      wording.numbers,
      wording.instead,
      wording.greetings,
      ...Object.values(wording.personal),
    ];
    const bySplit = splits.map((split) => new Set(tables.flatMap((table) => [...table[split]])));
    const voices = splits.map((split) => new Set(Object.values(wording.voicesBySplit[split]).flat() as string[]));
    for (const sets of [bySplit, voices]) {
      for (const [i, a] of sets.entries()) {
        for (const b of sets.slice(i + 1)) expect([...a].filter((text) => b.has(text))).toEqual([]);
      }
    }
  });

  test('are kept by the tasks: what a task mentions belongs to its split', () => {
    for (const split of splits) {
      const known = {
        order: new Set(entities('order', split)),
        product: new Set(entities('product', split)),
        town: new Set(entities('town', split)),
        email: new Set(entities('email', split)),
        card: new Set(entities('card', split)),
      };
      for (const { data, id } of makeTasks(supportDesk, split, 400, 8)) {
        for (const order of data.orders) {
          expect([
            id,
            known.order.has(order.number),
            known.product.has(order.product),
            known.town.has(order.town),
          ]).toEqual([id, true, true, true]);
        }
        expect(known.product.has(data.product)).toBe(true);
        expect(data.town === null || known.town.has(data.town)).toBe(true);
        for (const { product } of data.articles) expect(known.product.has(product)).toBe(true);
        expect(data.email === null || known.email.has(data.email)).toBe(true);
        expect(data.card === null || known.card.has(data.card)).toBe(true);
        const others = data.opening.replace(data.email ?? '', '').replace(data.card ?? '', '');
        for (const number of `${others} ${data.number}`.match(/\d{4}/g) ?? [])
          expect(known.order.has(number)).toBe(true);
      }
    }
  });
});

describe('personal data', () => {
  test.each([...splits, 'the golden set'] as const)('comes up in %s as often as in traffic', (where) => {
    const tasks = where === 'the golden set' ? readGolden() : makeTasks(supportDesk, where, 2000, 9);
    for (const kind of ['email', 'card'] as const) {
      const share = tasks.filter(({ data }) => data[kind] !== null).length / tasks.length;
      const spread = Math.sqrt((personalShare[kind] * (1 - personalShare[kind])) / tasks.length);
      expect([kind, Math.abs(share - personalShare[kind]) < 3 * spread]).toEqual([kind, true]);
    }
  });

  test('is what checkers recognise, stands in the opening, and comes through every persona', async () => {
    const tasks = makeTasks(supportDesk, 'train', 2000, 9).filter(({ data }) => data.email ?? data.card);
    for (const { data, ...task } of tasks) {
      const pieces = [data.email, data.card].filter((one) => one !== null);
      expect(data.email === null || validator.isEmail(data.email)).toBe(true);
      expect(data.card === null || validator.isCreditCard(data.card)).toBe(true);
      const said = await supportDesk.user({ ...task, data }).open();
      for (const piece of pieces) {
        expect(data.opening).toContain(piece);
        expect(said).toContain(piece);
      }
    }
  });
});

describe('the golden set', () => {
  test('is what its script makes', () => {
    expect(readFileSync(goldenFile, 'utf8')).toBe(goldenText(makeGolden()));
  });

  test('has 150 different cases, balanced over the types', () => {
    const tasks = readGolden();
    expect(tasks).toHaveLength(150);
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(150);
    expect(new Set(tasks.map(({ data }) => `${data.opening} ${data.number}`)).size).toBe(150);
    const counts = types.map((type) => tasks.filter((task) => task.type === type).length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    expect(new Set(tasks.map(({ split }) => split))).toEqual(new Set(['golden']));
  });

  test('has granting, declining and escalating cases in good number', () => {
    const endings = readGolden().map(({ data }) => conclude(data).ending.kind);
    const share = (kind: string) => endings.filter((one) => one === kind).length;
    expect(share('declined')).toBeGreaterThanOrEqual(25);
    expect(share('ticket')).toBeGreaterThanOrEqual(25);
    expect(endings.length - share('declined') - share('ticket')).toBeGreaterThanOrEqual(50);
  });

  test('is solved by the expert', async () => {
    const tasks = readGolden();
    const episodes = (await play(supportDesk, expert(tasks), tasks)).flat();
    expect(episodes.filter(({ reward }) => reward !== 1)).toEqual([]);
  });
});

test('there are eight tools, and a model is told their JSON Schema', () => {
  expect(tools.map(({ name }) => name)).toEqual([
    'find_order',
    'track_order',
    'cancel_order',
    'refund_order',
    'replace_order',
    'change_address',
    'search_articles',
    'escalate',
  ]);
  expect(toolSpec(tools[7] as never)).toEqual({
    type: 'function',
    function: {
      name: 'escalate',
      description: 'Hands the case to people.',
      parameters: {
        type: 'object',
        properties: { queue: { type: 'string', enum: ['refund', 'damage', 'product', 'care'] } },
        required: ['queue'],
        additionalProperties: false,
      },
    },
  });
});
