/** What tokens cost, by an upstream's price, in whatever currency that is in. */
import { z } from 'zod';

/** In the currency of the budgets. */
export const tokenPrice = z.strictObject({
  prompt: z.number().min(0).max(1e9).describe('For a million tokens of the prompt.'),
  completion: z.number().min(0).max(1e9).describe('For a million tokens of the answer.'),
});
export type TokenPrice = Readonly<z.output<typeof tokenPrice>>;

export type Tokens = { readonly promptTokens: number; readonly completionTokens: number };

export const moneyOf = ({ promptTokens, completionTokens }: Tokens, price: TokenPrice | undefined): number =>
  price === undefined ? 0 : (promptTokens * price.prompt + completionTokens * price.completion) / 1e6;

/** Of what several upstreams answered; null: none of them has a price, or nothing was counted. */
export function moneyOfAll(
  used: readonly (Tokens & { readonly upstream: string })[],
  upstreams: Readonly<Record<string, { readonly price?: TokenPrice | undefined }>>,
): number | null {
  const priced = used.filter(({ upstream }) => Object.hasOwn(upstreams, upstream) && upstreams[upstream]?.price);
  return priced.length === 0
    ? null
    : priced.reduce((sum, { upstream, ...tokens }) => sum + moneyOf(tokens, upstreams[upstream]!.price), 0);
}

/** Prices are small; money is shown with as many digits as make a call visible. */
export const moneyText = (money: number): string => (money === 0 ? '0' : money.toFixed(money < 1 ? 4 : 2));
