/** What docs/monitoring has for Prometheus and Grafana speaks of figures that /metrics has. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { noCounts } from '../src/collect/recorder.ts';
import { createMetrics } from '../src/gateway/metrics.ts';

const read = (name: string) => readFileSync(new URL(`../docs/monitoring/${name}`, import.meta.url), 'utf8');
const figures = async () => {
  const { registry } = createMetrics(() => ({ ...noCounts(), queueDepth: 0, queueBytes: 0, restarts: 0 }));
  const known = new Map<string, readonly string[]>();
  for (const { name, type } of await registry.getMetricsAsJSON()) {
    const labels = (registry.getSingleMetric(name) as unknown as { labelNames?: string[] }).labelNames ?? [];
    const names = String(type) === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
    for (const one of names) known.set(one, labels);
  }
  return known;
};
const named = (expression: string) => [...new Set(expression.match(/\bpawl_[a-z_]+/g))];

it('every alert is about a figure there is, with labels it has, and says something', async () => {
  const known = await figures();
  const { groups } = parse(read('rules.yml')) as {
    groups: {
      rules: { alert: string; expr: string; labels: Record<string, string>; annotations: { summary: string } }[];
    }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(5);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const { alert, expr, labels, annotations } of rules) {
    const of = named(expr);
    expect([alert, of.filter((name) => !known.has(name)), of.length > 0]).toEqual([alert, [], true]);
    expect(['page', 'ticket']).toContain(labels.severity);
    const used = [...annotations.summary.matchAll(/\$labels\.([a-z_]+)/g)].map(([, label]) => label!);
    const there = ['instance', ...of.flatMap((name) => known.get(name)!)];
    expect([alert, used.filter((label) => !there.includes(label))]).toEqual([alert, []]);
    // What may act must say on whom.
    if (labels.pawl_action !== undefined) expect(expr).toMatch(/by \(agent/);
  }
});

it('every panel of the dashboard shows a figure there is', async () => {
  const known = await figures();
  const { panels } = JSON.parse(read('grafana.json')) as { panels: { title: string; targets: { expr: string }[] }[] };
  for (const { title, targets } of panels)
    for (const { expr } of targets)
      expect([title, named(expr).filter((name) => !known.has(name)), named(expr).length > 0]).toEqual([
        title,
        [],
        true,
      ]);
});
