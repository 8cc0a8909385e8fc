/**
 * The shop as the agent can touch it: a private database and eight tools. Tools do what they are told, as real ones do: it
 * is the agent who must follow the policy. Results are short on purpose; the whole talk has to fit a very small model.
 */

import { type Tool, tool } from 'pawl';
import { z } from 'zod';

export const statuses = ['processing', 'shipped', 'delivered', 'cancelled'] as const;
export type Status = (typeof statuses)[number];

/** `days`: since delivery when delivered, until arrival when shipped, else 0. */
export const orderSchema = z.strictObject({
  number: z.string(),
  product: z.string(),
  town: z.string(),
  status: z.enum(statuses),
  price: z.number().int().positive(),
  days: z.number().int().min(0),
});
export type Order = z.infer<typeof orderSchema>;

export const articleSchema = z.strictObject({ product: z.string(), text: z.string() });
export type Article = z.infer<typeof articleSchema>;

export const queues = ['refund', 'damage', 'product', 'care'] as const;
export type Queue = (typeof queues)[number];

/** Something that was changed in the shop, in the order it happened. */
export type Effect = { readonly tool: string; readonly args: Readonly<Record<string, unknown>> };

export type Shop = {
  readonly orders: Map<string, Order>;
  readonly articles: readonly Article[];
  /** Number the next escalation gets. */
  readonly ticket: string;
  readonly effects: Effect[];
};

const unknownOrder = { error: 'no such order' };
const order = z.string().max(20);

/** Changes an order and notes that it was done, or says that there is none. */
function change(shop: Shop, name: string, args: { order: string; [key: string]: unknown }, how: (o: Order) => unknown) {
  const found = shop.orders.get(args.order);
  if (found === undefined) return unknownOrder;
  shop.effects.push({ tool: name, args });
  return how(found);
}

export const tools: readonly Tool<Shop>[] = [
  tool('find_order', 'Status, price and days since delivery of an order.', { order }, (args, shop: Shop) => {
    const found = shop.orders.get(args.order);
    if (found === undefined) return unknownOrder;
    const { status, price, days } = found;
    return status === 'delivered' ? { status, price, days } : { status, price };
  }),
  tool('track_order', 'Days until a shipped order arrives.', { order }, (args, shop: Shop) => {
    const found = shop.orders.get(args.order);
    if (found === undefined) return unknownOrder;
    return found.status === 'shipped' ? { days: found.days } : { error: 'not on its way' };
  }),
  tool('cancel_order', 'Cancels an order.', { order }, (args, shop: Shop) =>
    change(shop, 'cancel_order', args, (o) => {
      shop.orders.set(o.number, { ...o, status: 'cancelled' });
      return { ok: true };
    }),
  ),
  tool('refund_order', 'Pays the price of an order back.', { order }, (args, shop: Shop) =>
    change(shop, 'refund_order', args, (o) => ({ refunded: o.price })),
  ),
  tool('replace_order', 'Sends the goods of an order again.', { order }, (args, shop: Shop) =>
    change(shop, 'replace_order', args, () => ({ ok: true })),
  ),
  tool(
    'change_address',
    'Sends an order to another town.',
    { order, town: z.string().min(1).max(40) },
    (args, shop: Shop) =>
      change(shop, 'change_address', args, (o) => {
        shop.orders.set(o.number, { ...o, town: args.town });
        return { ok: true };
      }),
  ),
  tool(
    'search_articles',
    'The article that fits the words best.',
    { query: z.string().max(80) },
    (args, shop: Shop) => {
      const best = search(shop.articles, args.query);
      return best === null ? { text: '' } : { text: best.text };
    },
  ),
  tool('escalate', 'Hands the case to people.', { queue: z.enum(queues) }, (args, shop: Shop) => {
    shop.effects.push({ tool: 'escalate', args });
    return { ticket: shop.ticket };
  }),
];

/** Tools that only read. */
export const reads: ReadonlySet<string> = new Set(['find_order', 'track_order', 'search_articles']);

/** The article with the most of the query's words in its product's name; all of them have to be there. */
export function search(articles: readonly Article[], query: string): Article | null {
  const wanted = query
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');
  if (wanted.length === 0) return null;
  const share = ({ product }: Article): number => {
    const words = product.split(' ');
    return words.filter((word) => wanted.includes(word)).length / words.length;
  };
  return articles.find((article) => share(article) === 1) ?? null;
}
