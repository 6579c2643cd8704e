import type { Prices, wire } from '@toolgate/client';

const MILLION = 1_000_000;

/** What a run's tokens cost, where the gateway has a price for the model. */
export function costOf(
  prices: Prices,
  model: { provider?: string; name?: string },
  usage: wire.Usage,
): number | undefined {
  const price = prices.models[`${model.provider}:${model.name}`] ?? prices.models[model.name ?? ''];
  if (!price) return undefined;
  const cached = usage.cachedTokens ?? 0;
  return (
    ((usage.inputTokens - cached) * price.input +
      cached * (price.cachedInput ?? price.input) +
      usage.outputTokens * price.output) /
    MILLION
  );
}

/** An amount of money; small ones with as many digits as they need. */
export function formatCost(amount: number, currency: string): string {
  return new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: amount < 0.1 ? 5 : 2,
  }).format(amount);
}
