/**
 * What has changed, told to everybody who listens. One look at the database a second for all of them together, and none while nobody
 * listens. Events are numbered, and the latest are kept, so that whoever was cut off hears what they missed; what changed while
 * nobody looked is found by the first look after. A database that is away is looked for again; listeners stay.
 */
import { randomBytes } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { type Change, changesBetween, type Marks, type Topic } from '../store/changes.ts';

/** `hello`: you listen now. `all`: nobody knows what you missed, ask for everything. */
export type LiveEvent = {
  readonly id: string;
  readonly data: { readonly topic: Topic | 'hello' | 'all'; readonly id: string | null; readonly at: string };
};

export type Listener = {
  /** Ends when the listener is closed or the server ends. */
  readonly events: AsyncIterableIterator<LiveEvent>;
  close(): void;
};

export type Live = {
  listen(lastEventId: string | undefined): Listener;
  readonly listeners: number;
  close(): void;
};

export type LiveSettings = {
  readonly look: () => Promise<Marks>;
  readonly now?: () => Date;
  readonly everyMs?: number;
  /** Events that are kept for those who were cut off, and that one listener may be behind. */
  readonly kept?: number;
  readonly most?: number;
};

export function createLive({
  look,
  now = () => new Date(),
  everyMs = 1_000,
  kept = 1_000,
  most = 100,
}: LiveSettings): Live {
  const start = randomBytes(6).toString('hex'); // numbers of another process are not ours
  const past: LiveEvent[] = [];
  const clients = new Set<(event: LiveEvent | null) => void>();
  let count = 0;
  let marks: Marks | null = null;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;

  const eventOf = (topic: LiveEvent['data']['topic'], id: string | null): LiveEvent => ({
    id: `${start}-${count}`,
    data: { topic, id, at: now().toISOString() },
  });
  const tell = ({ topic, id }: Change) => {
    count++;
    const event = eventOf(topic, id);
    past.push(event);
    if (past.length > kept) past.shift();
    for (const send of clients) send(event);
  };

  const round = async () => {
    try {
      const seen = await look();
      for (const change of marks === null ? [] : changesBetween(marks, seen)) tell(change);
      marks = seen;
    } catch {
      // The database is away: what changes meanwhile differs from the last marks all the same.
    }
    timer = closed || clients.size === 0 ? null : setTimeout(() => void round(), everyMs);
  };
  const begin = () => {
    timer ??= setTimeout(() => void round(), 0);
  };

  /** What somebody missed who last heard this. */
  const missed = (last: string | undefined): LiveEvent[] => {
    if (last === undefined) return [eventOf('hello', null)];
    const at = past.findIndex(({ id }) => id === last);
    if (at >= 0) return [eventOf('hello', null), ...past.slice(at + 1)];
    return last === `${start}-${count}` ? [eventOf('hello', null)] : [eventOf('all', null)];
  };

  return {
    get listeners() {
      return clients.size;
    },
    listen(lastEventId) {
      if (closed) throw new RequestError(503, 'stopping', 'Pawl is stopping; try again soon.');
      if (clients.size >= most)
        throw new RequestError(503, 'busy', `${most} listen already, which is the most; try again soon.`);
      const queue: LiveEvent[] = missed(lastEventId?.slice(0, 100));
      let done = false;
      let wake = () => {};
      const send = (event: LiveEvent | null) => {
        if (event !== null) queue.push(event);
        // One who does not read is let go: it comes back and is told what it missed.
        if (event === null || queue.length > kept) end();
        wake();
      };
      const end = () => {
        done = true;
        clients.delete(send);
        wake();
      };
      clients.add(send);
      begin();
      async function* read(): AsyncGenerator<LiveEvent, void, undefined> {
        try {
          for (;;) {
            const next = queue.shift();
            if (next !== undefined) yield next;
            else if (done) return;
            else
              await new Promise<void>((resolve) => {
                wake = resolve;
              });
          }
        } finally {
          end();
        }
      }
      return { events: read(), close: end };
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      for (const send of [...clients]) send(null);
    },
  };
}
