/**
 * The desk's tasks: what a customer wants, what they will say, and the little database it happens in, all as plain data.
 * Eight types; inside each, the situations that the policy tells apart come up about equally often. Pure in the random
 * stream and the split.
 */

import { personas, type Random, type Split } from 'pawl';
import { z } from 'zod';
import { entities } from './entities.ts';
import { articleSchema, type Order, orderSchema, type Status } from './shop.ts';
import {
  type Attribute,
  attributes,
  bare,
  greetings,
  instead,
  numbers,
  personal,
  questions,
  requests,
} from './wording.ts';

export const wishes = ['status', 'cancel', 'refund', 'address', 'damaged', 'product', 'complaint'] as const;

export const deskData = z.strictObject({
  /** What the customer wants in the end. */
  wish: z.enum(wishes),
  persona: z.enum(personas),
  opening: z.string(),
  /** What they say when asked for the number; null when they have no order to talk about. */
  number: z.string().nullable(),
  /** They did not give the number at once. */
  held: z.boolean(),
  /** What they add to the number when they change their mind. */
  instead: z.string().nullable(),
  order: z.string().nullable(),
  town: z.string().nullable(),
  product: z.string(),
  question: z
    .strictObject({ attribute: z.enum(attributes), answer: z.string().nullable(), others: z.array(z.string()) })
    .nullable(),
  orders: z.array(orderSchema),
  articles: z.array(articleSchema),
  ticket: z.string(),
  /** Personal data that stands in the opening. */
  email: z.string().nullable(),
  card: z.string().nullable(),
});
export type DeskData = z.infer<typeof deskData>;

/** The customer's order in the database. */
export function customersOrder(data: DeskData): Order {
  const found = data.orders.find(({ number }) => number === data.order);
  if (found === undefined) throw new Error(`Order ${data.order} of this task is not in its database.`);
  return found;
}

type Situation = { readonly status: Status; readonly price: number; readonly days: number };

const cheap = (r: Random): number => r.integer(10, 99);
const dear = (r: Random): number => r.integer(100, 399);
const price = (r: Random): number => (r.chance(0.7) ? cheap(r) : dear(r));
const recent = (r: Random): number => r.integer(1, 30);
const old = (r: Random): number => r.integer(31, 90);

/** What the policy tells apart, for each wish about an order. */
const situations: Readonly<Record<string, readonly ((r: Random) => Situation)[]>> = {
  status: [
    (r) => ({ status: 'processing', price: price(r), days: 0 }),
    (r) => ({ status: 'shipped', price: price(r), days: r.integer(2, 9) }),
    (r) => ({ status: 'shipped', price: price(r), days: r.integer(2, 9) }),
    (r) => ({ status: 'delivered', price: price(r), days: r.integer(1, 90) }),
    (r) => ({ status: 'cancelled', price: price(r), days: 0 }),
  ],
  cancel: [
    (r) => ({ status: 'processing', price: price(r), days: 0 }),
    (r) => ({ status: 'processing', price: price(r), days: 0 }),
    (r) => ({ status: 'shipped', price: price(r), days: r.integer(2, 9) }),
    (r) => ({ status: 'delivered', price: price(r), days: r.integer(1, 90) }),
  ],
  refund: [
    (r) => ({ status: 'delivered', price: cheap(r), days: recent(r) }),
    (r) => ({ status: 'delivered', price: dear(r), days: recent(r) }),
    (r) => ({ status: 'delivered', price: price(r), days: old(r) }),
    (r) => ({ status: r.pick(['processing', 'shipped']), price: price(r), days: 3 }),
  ],
  address: [
    (r) => ({ status: 'processing', price: price(r), days: 0 }),
    (r) => ({ status: 'processing', price: price(r), days: 0 }),
    (r) => ({ status: 'shipped', price: price(r), days: r.integer(2, 9) }),
    (r) => ({ status: 'delivered', price: price(r), days: r.integer(1, 90) }),
  ],
  damaged: [
    (r) => ({ status: 'delivered', price: cheap(r), days: recent(r) }),
    (r) => ({ status: 'delivered', price: dear(r), days: recent(r) }),
    (r) => ({ status: 'delivered', price: price(r), days: old(r) }),
  ],
};

/** Share of customers who leave the number out. */
const heldShare = 0.15;
const greetingShare = 0.2;
/** How people write; most are calm. Changing one's mind is a task type of its own. */
const voicesShare = { calm: 8, terse: 3, panicked: 2, repeating: 1, typos: 2 } as const;

/** Shares of customers who write their e-mail address or card number, needed or not: in practice and golden tasks as in traffic. */
export const personalShare = { email: 0.2, card: 0.1 } as const;

export const deskTypes: Readonly<Record<string, (random: Random, split: Split) => DeskData>> = {
  status: withPersonal(orderTask('status')),
  cancel: withPersonal(orderTask('cancel')),
  refund: withPersonal(orderTask('refund')),
  address: withPersonal(orderTask('address')),
  damaged: withPersonal(orderTask('damaged')),
  product: withPersonal(productTask),
  complaint: withPersonal(complaintTask),
  mind: withPersonal(mindTask),
};

type Wanted = Omit<DeskData, 'email' | 'card'>;
type Make<Data> = (r: Random, split: Split) => Data;

function withPersonal(make: Make<Wanted>): Make<DeskData> {
  return (r, split) => {
    const data = make(r, split);
    const email = r.chance(personalShare.email) ? r.pick(entities('email', split)) : null;
    const card = r.chance(personalShare.card) ? r.pick(entities('card', split)) : null;
    const said = [
      data.opening,
      ...(email === null ? [] : [r.pick(personal.email[split]).replace('{email}', email)]),
      ...(card === null ? [] : [r.pick(personal.card[split]).replace('{card}', card)]),
    ];
    return { ...data, opening: said.join(' '), email, card };
  };
}

function orderTask(wish: 'status' | 'cancel' | 'refund' | 'address' | 'damaged') {
  return (r: Random, split: Split): Wanted => {
    const world = makeWorld(r, split, r.pick(situations[wish]!)(r));
    const held = r.chance(heldShare);
    return {
      ...world,
      wish,
      town: wish === 'address' ? world.town : null,
      persona: r.weighted(voicesShare),
      held,
      opening: greet(r, split, fill(r.pick((held ? bare : requests)[wish]![split]), world)),
      number: fill(r.pick(numbers[split]), world),
      instead: null,
      question: null,
    };
  };
}

function mindTask(r: Random, split: Split): Wanted {
  const world = makeWorld(r, split, r.pick(situations.status!)(r));
  return {
    ...world,
    wish: 'status',
    town: null,
    persona: 'changes-mind',
    held: true,
    opening: greet(r, split, r.pick(requests.mind![split])),
    number: fill(r.pick(numbers[split]), world),
    instead: r.pick(instead[split]),
    question: null,
  };
}

function complaintTask(r: Random, split: Split): Wanted {
  const world = makeWorld(r, split, r.pick(situations.refund!)(r));
  return {
    ...world,
    wish: 'complaint',
    town: null,
    persona: r.weighted(voicesShare),
    held: false,
    opening: greet(r, split, fill(r.pick(requests.complaint![split]), world)),
    number: null,
    instead: null,
    question: null,
  };
}

function productTask(r: Random, split: Split): Wanted {
  const world = makeWorld(r, split, r.pick(situations.status!)(r));
  const attribute = r.pick(attributes);
  const other = r.pick(attributes.filter((one) => one !== attribute));
  const known = r.chance(0.75);
  const answer = value(r, attribute);
  const distraction = value(r, other);
  const facts = r.shuffle([`${attribute} ${answer}`, `${other} ${distraction}`]);
  const article = { product: world.product, text: `${world.product}: ${facts.join(', ')}` };
  return {
    ...world,
    wish: 'product',
    order: null,
    town: null,
    persona: r.weighted(voicesShare),
    held: false,
    opening: greet(r, split, fill(r.pick(questions[attribute][split]), world)),
    number: null,
    instead: null,
    question: { attribute, answer: known ? answer : null, others: known ? [distraction] : [] },
    articles: known ? r.shuffle([...world.articles, article]) : world.articles,
  };
}

type World = Pick<DeskData, 'product' | 'orders' | 'articles' | 'ticket'> & {
  order: string;
  town: string;
  name: string;
};

/** The customer's order among two others, and articles about other products. */
function makeWorld(r: Random, split: Split, situation: Situation): Omit<World, 'name'> {
  const [number, second, third] = distinct(r, entities('order', split), 3);
  const [product, ...others] = distinct(r, entities('product', split), 4);
  const [town, ...towns] = distinct(r, entities('town', split), 4);
  const bystander = (n: string, i: number): Order => ({
    number: n,
    product: others[i]!,
    town: towns[i]!,
    ...r.pick(situations.status!)(r),
  });
  return {
    order: number!,
    town: town!,
    product: product!,
    orders: r.shuffle([
      { number: number!, product: product!, town: towns[2]!, ...situation },
      bystander(second!, 0),
      bystander(third!, 1),
    ]),
    articles: others.map((one) => {
      const attribute = r.pick(attributes);
      return { product: one, text: `${one}: ${attribute} ${value(r, attribute)}` };
    }),
    ticket: String(r.integer(10, 99)),
  };
}

function value(r: Random, attribute: Attribute): string {
  switch (attribute) {
    case 'weight':
      return `${r.integer(2, 30)} kg`;
    case 'warranty':
      return `${r.integer(2, 9)} years`;
    case 'size':
      return `${r.integer(20, 99)} cm`;
    case 'power':
      return `${r.integer(10, 90)} watts`;
    default:
      return attribute satisfies never;
  }
}

function distinct(r: Random, list: readonly string[], count: number): string[] {
  const found = new Set<string>();
  while (found.size < count) found.add(r.pick(list));
  return [...found];
}

function greet(r: Random, split: Split, text: string): string {
  if (!r.chance(greetingShare)) return text;
  return `${r.pick(greetings[split]).replace('{name}', r.pick(entities('name', split)))} ${text}`;
}

function fill(template: string, world: { order: string; product: string; town: string }): string {
  return template.replace('{order}', world.order).replace('{product}', world.product).replace('{town}', world.town);
}
