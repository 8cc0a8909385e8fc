import { describe, expect, it } from 'vitest';
import { type Verdict, verdicts } from '../evaluate/verdict.ts';
import { type Asking, admit } from './admit.ts';

const asking = (verdict: Verdict | null, more: Partial<Asking> = {}): Asking => ({
  agent: 'desk',
  candidate: 'v2',
  baseline: 'v1',
  report: verdict === null ? null : { id: 'report-1', verdict, baseline: 'v1', candidate: 'v2' },
  settings: { approval: 'automatic', notPassed: 'ask' },
  forced: null,
  ...more,
});

describe('a candidate', () => {
  it('that passes begins, one that fails is refused, any other waits for a person', () => {
    expect(verdicts.map((verdict) => [verdict, admit(asking(verdict)).phase])).toEqual([
      ['pass', 'canary'],
      ['fail', 'refused'],
      ['inconclusive', 'waiting'],
      ['unmeasured', 'waiting'],
    ]);
  });

  it('waits even when it passes, or is refused at once when it does not, where the settings say so', () => {
    const human = { approval: 'human', notPassed: 'refuse' } as const;
    expect(admit(asking('pass', { settings: human })).phase).toBe('waiting');
    expect(admit(asking('inconclusive', { settings: human }))).toMatchObject({
      phase: 'refused',
      reason: expect.stringContaining('deploy.notPassed is refuse'),
    });
  });

  it('needs a report about itself and the release that serves now, and is told how to get one', () => {
    expect(admit(asking(null)).reason).toBe(
      'Release v2 is not rolled out: it has not been evaluated against v1, which serves. Run `pawl evaluate --agent desk --candidate v2` first; a person may begin all the same with --force and --reason.',
    );
    const old = { id: 'report-1', verdict: 'pass', baseline: 'v0', candidate: 'v2' } as const;
    expect(admit(asking('pass', { report: old }))).toMatchObject({
      phase: 'refused',
      reason: expect.stringContaining('report report-1 compares v2 with v0, and v1 serves'),
    });
  });

  it('begins whatever was found when a person forces it, and the reason is kept', () => {
    for (const verdict of [null, ...verdicts])
      expect(admit(asking(verdict, { forced: 'The old one is on fire.' })).phase).toBe('canary');
    expect(admit(asking('fail', { forced: 'A try.' })).reason).toBe('Forced: A try. Its evaluation ended with fail.');
  });
});
