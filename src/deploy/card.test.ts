import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { compareTasks } from '../evaluate/match.ts';
import type { Report } from '../evaluate/report.ts';
import { sealed } from './audit.ts';
import { type CardParts, cardYaml, modelCard } from './card.ts';
import { makeRelease } from './release.ts';

const release = makeRelease({ agent: 'desk', name: 'v2', upstream: 'local', model: 'm2' }, Date.UTC(2026, 4, 20, 12));
const nothing: CardParts = {
  release,
  baseline: null,
  run: null,
  report: null,
  rollout: null,
  dataset: null,
  compatibility: null,
  lineage: [],
  audit: [],
};
// 10 refunds: 4 → 9; 10 status: 10 → 9.
const tasks = Array.from({ length: 20 }, (_, i) => ({
  id: `t${i}`,
  type: i < 10 ? 'refund' : 'status',
  baseline: i < 4 || i >= 10 ? 1 : 0,
  candidate: i === 9 || i === 10 ? 0 : 1,
}));
const report: Report = {
  ...{ id: 'report-1', agent: 'desk', baseline: 'v1', candidate: 'v2', attempts: 1, temperature: 1, seed: 7 },
  suite: { name: 'golden', hash: 'abc', tasks: 20 },
  ...compareTasks(tasks, 7),
  tasks,
  drift: 0.25,
  ...{ verdict: 'inconclusive', reasons: ['May be chance.'], seconds: 3, createdAt: 0 },
};

describe('a model card', () => {
  it('says what is not known instead of leaving it out', () => {
    const card = modelCard(nothing);
    for (const line of [
      'No dataset is on record.',
      'No training run is on record.',
      'It has not been evaluated.',
      'Whether it forgot anything is not known: there is no report.',
      'Whether it fits where it is to serve was not checked.',
      'Whether it learned tricks was not looked at.',
      'It has had no traffic.',
      'Nobody has acted on this release yet.',
    ])
      expect(card).toContain(line);
  });

  it('tells before and after by task type, what got worse, and who agreed', () => {
    const row = sealed(
      {
        ...{ agent: 'desk', actor: 'ann', event: 'release-created', subject: release.id },
        details: {},
        at: release.createdAt,
      },
      null,
    );
    const dataset = { id: 'd1', trajectories: 80, left: { 'no consent': 15, duplicate: 5 }, gates: [], kAnonymity: 5 };
    const card = modelCard({ ...nothing, report, dataset, audit: [row] });
    expect(card).toContain('Dataset d1: 80 trajectories. Left out: 15 no consent, 5 duplicate.');
    expect(card).toContain(
      '| all | 20 | 70.0% | 90.0% |\n| refund | 10 | 40.0% | 90.0% |\n| status | 10 | 100.0% | 90.0% |',
    );
    expect(card).toContain('Task types that got worse: status (-10.0 points).');
    expect(card).toContain('Verdict: **inconclusive**. May be chance. A person decides');
    expect(card).toContain(`- 2026-05-20 12:00: release-created by ann\n\nAudit row 1, hash \`${row.hash}\`.`);
  });

  it('has every gate with its figures, and says under safety what was found and what could not be', () => {
    const gate = { baseline: 0.1, candidate: 0.4, limit: 0.1, look: [{ task: 't1', attempt: 0, answer: 'No.' }] };
    const gates: Report['gates'] = [
      { ...gate, name: 'refusals', verdict: 'fail', reason: '40% refuse and solve nothing.' },
      { ...gate, name: 'drift', verdict: 'unmeasured', baseline: null, candidate: null, reason: 'No tokens.' },
      { ...gate, name: 'length', verdict: 'pass', reason: 'As long as before.' },
    ];
    const card = modelCard({ ...nothing, report: { ...report, gates } });
    expect(card).toContain(
      '| gate | before | after | limit | verdict |\n|---|---:|---:|---:|---|\n| refusals | 0.10 | 0.40 | 0.10 | fail |\n| drift | – | – | 0.10 | unmeasured |',
    );
    expect(card).toContain('Found by gates:\n- refusals: 40% refuse and solve nothing.\n\nNot measured: drift.');
    const read = parse(cardYaml({ ...nothing, report: { ...report, gates } }));
    expect(read.evaluation.gates[0]).toEqual({
      name: 'refusals',
      verdict: 'fail',
      baseline: 0.1,
      candidate: 0.4,
      limit: 0.1,
      reason: '40% refuse and solve nothing.',
    });
    expect(read.safety).toMatchObject({ stoppedBy: ['refusals'], askedBy: [] });
    const clean = modelCard({ ...nothing, report: { ...report, gates: [gates[2]!] } });
    expect(clean).toContain('No gate found drift or a trick.');
  });

  it('says why, where a person gave a reason, and what was forced', () => {
    const row = sealed(
      {
        ...{ agent: 'desk', actor: 'eve', event: 'rollout-started', subject: 'r1', at: release.createdAt },
        details: { forced: true, reason: 'A dare.' },
      },
      null,
    );
    expect(modelCard({ ...nothing, audit: [row] })).toContain('rollout-started by eve, forced: A dare.\n');
    const ended = { agent: 'desk', actor: 'pawl', event: 'run-finished', subject: 'turn-1', at: release.createdAt };
    const unsaid = sealed({ ...ended, details: { reason: null, step: 73 } }, null);
    expect(modelCard({ ...nothing, audit: [unsaid] })).toContain('run-finished by pawl\n');
  });

  it('does not let a name become markup', () => {
    const evil = { ...report, types: { 'a|b\n# <script>': report.overall! } };
    const card = modelCard({ ...nothing, report: evil });
    expect(card).toContain('| a\\|b # \\<script\\> | 20 |');
    expect(card).not.toMatch(/^# <script>/m);
  });
});
