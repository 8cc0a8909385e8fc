/** A process that looks at the rollouts of a database once, and is killed with SIGKILL at the n-th statement: `URL NOW N before|after`. */
import { openStore } from '../store/postgres.ts';
import { dieAtStatement } from './fixtures-die.ts';
import { reconcile } from './reconcile.ts';

const [url, now, at, when] = process.argv.slice(2);
const store = await openStore({ home: '', databaseUrl: url!, join: true });
const die = () => process.kill(process.pid, 'SIGKILL');
dieAtStatement({ at: Number(at), when: when as 'before' | 'after', how: die });
await reconcile(store, { now: Number(now) });
await store.close();
process.exit(0);
