import { describe, expect, it } from 'vitest';
import { readAudit } from '../store/audit.ts';
import { withStore } from '../store/test-store.ts';
import { type AuditEvent, audit, chainProblem, genesis, sealed, verifyAudit } from './audit.ts';

const event = (fields: Partial<AuditEvent> = {}): AuditEvent => ({
  ...{ agent: 'desk', actor: 'ann', event: 'release-created', subject: 'r', details: { a: 1 }, at: 1000, ...fields },
});
const first = sealed(event(), null);
const second = sealed(event({ actor: 'bob' }), first);
const third = sealed(event({ actor: 'eve' }), second);

describe('the chain', () => {
  it('holds from the first row on', () => {
    expect(first).toMatchObject({ n: 1, previous: genesis });
    expect(chainProblem([first, second, third], null)).toBeNull();
  });

  it('breaks where a row was changed, even if its own hash was made again', () => {
    expect(chainProblem([first, { ...second, actor: 'nobody' }, third], null)).toMatchObject({ n: 2 });
    const forged = sealed(event({ actor: 'nobody' }), first);
    expect(chainProblem([first, forged, third], null)).toMatchObject({ n: 3 });
  });

  it('breaks where a row is missing or out of order', () => {
    expect(chainProblem([first, third], null)?.problem).toBe('Row 2 is missing; the next one is 3.');
    expect(chainProblem([second, third], null)?.n).toBe(1);
    expect(chainProblem([first, third, second], null)?.n).toBe(2);
  });
});

describe('the audit log', () => {
  it('answers who did what, and proves it', async () => {
    const store = await withStore();
    const april = Date.UTC(2026, 3, 10);
    await audit(store.db, event({ at: Date.UTC(2026, 2, 1) }));
    await audit(store.db, event({ actor: 'bob', event: 'rollout-promoted', at: april }));
    await audit(store.db, event({ at: april + 1 }));
    const found = await readAudit(store, {
      event: 'rollout-promoted',
      since: new Date(Date.UTC(2026, 3, 1)),
      until: new Date(Date.UTC(2026, 4, 1)),
    });
    expect(found.map(({ n, actor, at }) => ({ n, actor, at }))).toEqual([{ n: 2, actor: 'bob', at: april }]);
    expect(await verifyAudit(store)).toMatchObject({ rows: 3, problem: null });
  });

  it('has no gaps and no forks when many write at once, and none of what was rolled back', async () => {
    const store = await withStore();
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => {
        const writing = store.db.transaction().execute(async (transaction) => {
          await audit(transaction, event({ subject: `s${i}` }));
          if (i % 3 === 0) throw new Error('changed my mind');
        });
        return writing.catch(() => {});
      }),
    );
    expect(await verifyAudit(store)).toMatchObject({ rows: 8, problem: null });
  });

  it('cannot be changed through the database, and shows it when somebody with the power to does', async () => {
    const store = await withStore();
    for (let i = 0; i < 3; i++) await audit(store.db, event({ subject: `s${i}` }));
    const { head } = await verifyAudit(store);
    for (const statement of [
      `update pawl.audit set actor = 'nobody' where n = 2`,
      'delete from pawl.audit where n = 2',
      'truncate pawl.audit',
    ])
      await expect(store.pool.query(statement)).rejects.toThrow('The audit log only grows');
    await store.pool.query('alter table pawl.audit disable trigger audit_only_grows');
    await store.pool.query('delete from pawl.audit where n = 3');
    // Cut off at the end, the chain itself is whole; a head noted earlier tells.
    expect((await verifyAudit(store)).problem).toBeNull();
    expect((await verifyAudit(store, head)).problem?.n).toBe(3);
    await store.pool.query(`update pawl.audit set actor = 'nobody' where n = 2`);
    expect((await verifyAudit(store)).problem).toEqual({ n: 2, problem: 'Row 2 was changed after it was written.' });
  });
});
