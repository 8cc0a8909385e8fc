/** What `GET /api/loop` answers, as far as the demo reads it. */
export type Summary = {
  readonly before: number;
  readonly after: number;
  readonly ci: readonly [number, number];
  readonly promoted: boolean;
  readonly seconds: number;
};

export type Turn = {
  readonly number: number;
  readonly seed: number;
  readonly done: readonly string[];
  /** What each stage that is done has to say. */
  readonly told: readonly { readonly stage: string; readonly lines: readonly string[] }[];
  readonly endedAt: string | null;
  readonly ended: string | null;
  /** Of a turn that has come to a report. */
  readonly summary: Summary | null;
  readonly state: {
    /** Seconds that each stage has worked. */
    readonly seconds?: Readonly<Record<string, number>>;
    readonly curate?: { readonly dataset: string };
    readonly evaluate?: { readonly report: string };
    readonly deploy?: { readonly release: string; readonly phase: string };
  };
};

export type LoopView = {
  readonly next: { readonly kind: string; readonly reason: string };
  readonly turn: Turn | null;
  readonly progress: { readonly stage: string; readonly share: number; readonly text: string } | null;
  /** The agent's rollout that has not ended. */
  readonly rollout: { readonly phase: string; readonly share: number } | null;
};
