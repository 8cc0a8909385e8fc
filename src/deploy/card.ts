/**
 * A model card in Markdown, made from the records and from nothing else: what the release was made of, how, what was measured,
 * what was found unsafe, who agreed. What no record says, the card says is not known. Follows Mitchell et al., "Model Cards
 * for Model Reporting" (2019), in short.
 */
import { type Compatibility, needsInWords } from '../evaluate/compatibility.ts';
import type { Report } from '../evaluate/report.ts';
import { consequence, percent } from '../evaluate/verdict.ts';
import type { RunRecord } from '../train/run-record.ts';
import type { AuditRow } from './audit.ts';
import type { Release } from './release.ts';
import { type Rollout, weightOf } from './rollout.ts';
import { yaml } from './yaml.ts';

export type CardParts = {
  readonly release: Release;
  readonly baseline: Release | null;
  readonly run: RunRecord | null;
  readonly report: Report | null;
  readonly rollout: Rollout | null;
  /** What it was trained on: how many trajectories stayed, and how many were left out for which reason; null: unknown. */
  readonly dataset: {
    readonly id: string;
    readonly trajectories: number;
    readonly left: Readonly<Record<string, number>>;
    /** What went in and came out of each gate, in order: consent, personal data, k-anonymity and the others. */
    readonly gates: readonly { readonly gate: string; readonly entered: number; readonly passed: number }[];
    readonly kAnonymity: number | null;
  } | null;
  /** Whether it fits where it is to serve, as last checked; null: nobody has. */
  readonly compatibility: Pick<Compatibility, 'verdict' | 'checks' | 'at' | 'needs' | 'server'> | null;
  /** What it was made from, the nearest first. */
  readonly lineage: readonly Release[];
  /** Audit rows about the release, its rollout, report, run and dataset, oldest first. */
  readonly audit: readonly AuditRow[];
};

export function modelCard(parts: CardParts): string {
  const { release, baseline, run, report, rollout, dataset, lineage, audit } = parts;
  const head = audit.at(-1);
  return `${[
    `# ${inline(release.name)}`,
    `Release of the agent ${inline(release.agent)}, made ${day(release.createdAt)}. Answers as \`${inline(release.model)}\` at upstream \`${inline(release.upstream)}\`${baseline === null ? '' : `; to replace ${inline(baseline.name)}`}.`,
    ...(release.internal
      ? ['**Internal**: it learned from what is confidential, and must not leave the deployment it was trained in.']
      : []),
    '## Data',
    dataset === null
      ? release.dataset === null
        ? 'No dataset is on record.'
        : `Dataset ${inline(release.dataset)}; its record is not here any more.`
      : `Dataset ${inline(dataset.id)}: ${dataset.trajectories} trajectories. Left out: ${left(dataset.left)}.`,
    ...(dataset === null || dataset.gates.length === 0
      ? []
      : [
          [
            '| gate | entered | passed |',
            '|---|---:|---:|',
            ...dataset.gates.map(({ gate, entered, passed }) => `| ${inline(gate)} | ${entered} | ${passed} |`),
          ].join('\n'),
        ]),
    ...(dataset === null || dataset.kAnonymity === null
      ? []
      : [`Patterns of fewer than ${dataset.kAnonymity} people are left out (k-anonymity).`]),
    '## Method',
    run === null
      ? 'No training run is on record.'
      : `Run ${inline(run.id)}, recipe ${inline(run.recipe)}, ${run.step} of ${run.steps} steps from ${inline(base(run.base))}, seed ${run.seed}; ended ${run.status}${run.reason === null ? '' : `: ${inline(run.reason)}`}.`,
    ...(run === null ? [] : [`Settings: \`${inline(JSON.stringify(run.settings))}\``]),
    ...answering(release),
    '## Lineage',
    lineage.length === 0
      ? 'It was made from no other release.'
      : `Made from ${lineage.map(({ name }) => inline(name)).join(', which was made from ')}${run === null ? '' : `; trained from ${inline(base(run.base))}`}.`,
    '## Evaluation',
    ...evaluation(report),
    fits(parts.compatibility),
    '## Safety',
    ...safety(report, rollout),
    '## Approval',
    ...(audit.length === 0 ? ['Nobody has acted on this release yet.'] : [audit.map(auditLine).join('\n')]),
    ...(head === undefined ? [] : [`Audit row ${head.n}, hash \`${head.hash}\`.`]),
  ].join('\n\n')}\n`;
}

function answering({ sampling, prompt, thinking }: Release): string[] {
  const said = [
    ...(Object.keys(sampling).length === 0 ? [] : [`Sampling: \`${inline(JSON.stringify(sampling))}\`.`]),
    ...(prompt === null ? [] : [`Its own prompt (${prompt.rule}), ${prompt.text.length} characters.`]),
    ...(thinking === null ? [] : [`Thinking: ${thinking} tokens at most.`]),
  ];
  return said.length === 0 ? [] : [said.join(' ')];
}

/** The same records for a program, as YAML. */
export const cardYaml = ({
  release,
  baseline,
  run,
  report,
  rollout,
  dataset,
  compatibility,
  lineage,
  audit,
}: CardParts): string =>
  `${yaml({
    release: { ...release, createdAt: day(release.createdAt) },
    replaces: baseline?.name ?? null,
    lineage: lineage.map(({ id, name, model }) => ({ id, name, model })),
    data: dataset,
    method: run && {
      ...{ run: run.id, recipe: run.recipe, base: base(run.base), seed: run.seed, steps: run.steps, step: run.step },
      ...{ status: run.status, settings: run.settings },
    },
    evaluation: report && {
      ...{ report: report.id, suite: report.suite, attempts: report.attempts, verdict: report.verdict },
      ...{ reasons: report.reasons, overall: report.overall, types: report.types },
      ...{ passK: report.passK ?? null, reward: report.reward ?? null, broad: report.broad ?? null },
      gates: (report.gates ?? []).map(({ look: _, ...gate }) => gate),
    },
    compatibility: compatibility && {
      ...{ verdict: compatibility.verdict, at: day(compatibility.at), server: compatibility.server ?? null },
      ...{ needs: compatibility.needs ?? null, checks: compatibility.checks },
    },
    safety: {
      drift: report?.drift ?? null,
      driftFromBase: report?.base ?? null,
      stoppedBy: gatesWith(report, 'fail'),
      askedBy: gatesWith(report, 'inconclusive'),
    },
    rollout: rollout && { id: rollout.id, phase: rollout.phase, share: weightOf(rollout), reasons: rollout.reasons },
    approvals: audit.map(({ n, at, actor, event, hash }) => ({ n, at: day(at), by: actor, event, hash })),
  })}\n`;

function evaluation(report: Report | null): string[] {
  if (report === null) return ['It has not been evaluated.'];
  const { overall, suite } = report;
  const asked = `Suite ${inline(suite.name)} (${suite.tasks} tasks, hash \`${suite.hash}\`), ${report.attempts} attempt${report.attempts === 1 ? '' : 's'} each, seed ${report.seed}.`;
  const verdict = `Verdict: **${report.verdict}**. ${report.reasons.map(inline).join(' ')} ${consequence(report.verdict)}`;
  if (overall === null) return [asked, verdict];
  const [low, high] = overall.interval;
  const rows = Object.entries(report.types).map(([name, type]) => row(name, type));
  return [
    `${asked} Difference ${points(overall.difference)} (95% interval ${points(low)} to ${points(high)}).${overall.detectable === null ? '' : ` The suite can be relied on to show ${points(overall.detectable)} or more.`}`,
    ['| tasks | n | before | after |', '|---|---:|---:|---:|', row('all', overall), ...rows, ...broad(report)].join(
      '\n',
    ),
    ...(report.passK ?? []).map(
      ({ k, baseline, candidate }) =>
        `All of ${k} attempts solve a task: ${percent(baseline)} before, ${percent(candidate)} after.`,
    ),
    ...gateTable(report),
    verdict,
  ];
}

function fits(compatibility: CardParts['compatibility']): string {
  if (compatibility === null) return 'Whether it fits where it is to serve was not checked.';
  const { verdict, checks, at, needs, server } = compatibility;
  const asked = needs === undefined ? '' : ` Asked for: ${needsInWords(needs)}.`;
  return `Where it is to serve${server === undefined ? '' : `, \`${inline(server)}\``}, checked ${day(at)}: **${verdict}**. ${checks.map(({ name, verdict: end, reason }) => `${name} ${end}: ${inline(reason)}`).join(' ')}${asked}`;
}

const broad = ({ broad: other }: Report): string[] =>
  other === undefined ? [] : [row(`broad: ${other.suite}`, other.comparison)];

function gateTable({ gates = [] }: Report): string[] {
  if (gates.length === 0) return [];
  const figure = (value: number | null) => (value === null ? '–' : value.toFixed(2));
  const rows = gates.map(
    ({ name, baseline, candidate, limit, verdict }) =>
      `| ${inline(name)} | ${figure(baseline)} | ${figure(candidate)} | ${figure(limit)} | ${verdict} |`,
  );
  return [['| gate | before | after | limit | verdict |', '|---|---:|---:|---:|---|', ...rows].join('\n')];
}

const gatesWith = (report: Report | null, verdict: Report['verdict']): string[] =>
  (report?.gates ?? []).filter((gate) => gate.verdict === verdict).map(({ name }) => name);

/** What looked for drift and tricks, and found or could not find them. */
function gatesSaid(report: Report | null): string[] {
  if (report === null || (report.gates ?? []).length === 0) return ['Whether it learned tricks was not looked at.'];
  const reasons = (verdict: Report['verdict']) =>
    report.gates!.flatMap((gate) => (gate.verdict === verdict ? [`${inline(gate.name)}: ${inline(gate.reason)}`] : []));
  const found = [...reasons('fail'), ...reasons('inconclusive')];
  const untold = gatesWith(report, 'unmeasured');
  return [
    found.length === 0
      ? 'No gate found drift or a trick.'
      : ['Found by gates:', ...found.map((one) => `- ${one}`)].join('\n'),
    ...(untold.length === 0 ? [] : [`Not measured: ${untold.map(inline).join(', ')}.`]),
  ];
}

const row = (name: string, { n, baseline, candidate }: { n: number; baseline: number; candidate: number }): string =>
  `| ${inline(name)} | ${n} | ${percent(baseline)} | ${percent(candidate)} |`;

function safety(report: Report | null, rollout: Rollout | null): string[] {
  const worse = Object.entries(report?.types ?? {}).filter(([, { difference }]) => difference < 0);
  const fallen =
    report === null
      ? 'Whether it forgot anything is not known: there is no report.'
      : worse.length === 0
        ? 'No task type got worse in the evaluation.'
        : `Task types that got worse: ${worse.map(([name, { difference }]) => `${inline(name)} (${points(difference)})`).join(', ')}.`;
  const traffic =
    rollout === null
      ? 'It has had no traffic.'
      : `Rollout ${inline(rollout.id)} is ${rollout.phase} with ${percent(weightOf(rollout))} of the users. ${rollout.reasons.map(inline).join(' ')}`;
  const drift = report?.drift ?? null;
  const fromBase =
    typeof report?.base?.drift === 'number'
      ? `, and ${Math.max(0, report.base.drift).toFixed(2)} from those of ${inline(report.base.release)}, the base`
      : '';
  const moved =
    drift === null
      ? []
      : [`Its answers moved ${Math.max(0, drift).toFixed(2)} nats per token from the baseline’s${fromBase}.`];
  return [[fallen, ...moved].join(' '), ...gatesSaid(report), traffic];
}

function auditLine({ at, actor, event, details }: AuditRow): string {
  type Said = { readonly forced?: boolean; readonly reason?: string | null; readonly reasons?: readonly string[] };
  const { forced, reason, reasons = [] } = JSON.parse(details) as Said;
  // Why a person moved a rollout; what moved by itself says so at length, and the safety section has it.
  const said = reason ?? (event.startsWith('rollout-') && actor !== 'pawl' ? reasons[0] : undefined);
  const why = said === undefined ? '' : `: ${inline(said)}`;
  return `- ${day(at)}: ${inline(event)} by ${inline(actor)}${forced === true ? ', forced' : ''}${why}`;
}
const left = (reasons: Readonly<Record<string, number>>): string =>
  Object.entries(reasons)
    .map(([reason, count]) => `${count} ${inline(reason)}`)
    .join(', ') || 'nothing';
const base = (folder: string): string => folder.split('/').filter(Boolean).at(-1) ?? folder;
const day = (at: number): string => new Date(at).toISOString().slice(0, 16).replace('T', ' ');
const points = (share: number): string => `${share > 0 ? '+' : ''}${(share * 100).toFixed(1)} points`;
/** Names come from outside: they stay on their line and inside their cell, and are no markup. */
const inline = (text: string): string =>
  text
    .replace(/\s+/g, ' ')
    .replace(/[|`<>[\]]/g, '\\$&')
    .slice(0, 500);
