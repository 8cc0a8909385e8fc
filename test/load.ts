/** A steady stream of conversations, each with an id of its own, until told to stop. Keeps what every caller saw. */
export type Load = {
  /** Trajectory ids whose answer arrived whole. */
  readonly answered: Set<string>;
  /** When each of them had arrived. */
  readonly answeredAt: Map<string, number>;
  /** Feedback that was acknowledged: trajectory ids. */
  readonly acknowledged: Set<string>;
  readonly failures: { id: string; reason: string }[];
  stop(): Promise<void>;
};

export function startLoad(options: {
  url: () => string;
  key: string;
  callers: number;
  prefix: string;
  /** Also send feedback after each answer; its 202 says that the journal has it. */
  feedback?: boolean;
  stream?: boolean;
  /** Each caller begins a call this often, or as soon as the one before is answered; without it, at once. */
  everyMs?: number;
}): Load {
  const answered = new Set<string>();
  const answeredAt = new Map<string, number>();
  const acknowledged = new Set<string>();
  const failures: Load['failures'] = [];
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${options.key}` };
  let stopped = false;
  let count = 0;

  const post = async (path: string, body: unknown) => {
    const response = await fetch(options.url() + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, text: await response.text() };
  };
  const caller = async () => {
    for (let due = Date.now(); !stopped; due = Math.max(due + (options.everyMs ?? 0), Date.now())) {
      if (due > Date.now()) await new Promise((resolve) => setTimeout(resolve, due - Date.now()));
      const id = `${options.prefix}-${count++}`;
      try {
        const { status, text } = await post(`/t/${id}/v1/chat/completions`, {
          model: 'echo',
          stream: options.stream ?? false,
          user: `user-${id}`,
          messages: [{ role: 'user', content: `This is ${id}` }],
        });
        const whole = options.stream ? text.endsWith('data: [DONE]\n\n') : text.includes(`You said: This is ${id}`);
        if (status !== 200 || !whole) throw new Error(`status ${status}: ${text.slice(0, 200)}`);
        answered.add(id);
        answeredAt.set(id, Date.now());
        if (options.feedback) {
          const { status: accepted } = await post(`/t/${id}/v1/feedback`, { vote: 'up' });
          if (accepted === 202) acknowledged.add(id);
        }
      } catch (error) {
        failures.push({ id, reason: String(error) });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  };
  const callers = Array.from({ length: options.callers }, caller);
  return {
    answered,
    answeredAt,
    acknowledged,
    failures,
    async stop() {
      stopped = true;
      await Promise.all(callers);
    },
  };
}
