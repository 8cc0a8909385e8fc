/** One episode under way, and how it becomes the record of one that has ended. */
import type { EndView, Environment, Outcome, Task, User } from './environment.ts';
import type { Episode, EpisodeTurn } from './episode.ts';
import type { Message } from './message.ts';
import type { Conversation } from './player.ts';

export type Session<Data, Database> = {
  readonly id: string;
  readonly task: Task<Data>;
  readonly attempt: number;
  readonly seed: number;
  readonly groupSeed: number;
  readonly started: number;
  readonly database: Database;
  readonly user: User;
  readonly messages: Message[];
  readonly turns: EpisodeTurn[];
  previous: Conversation['previous'];
  usage: { context: number; completion: number };
  end: { outcome: Outcome; detail: string } | null;
};

export async function close<Data, Database>(
  environment: Environment<Data, Database>,
  session: Session<Data, Database>,
  milliseconds: number,
): Promise<Episode> {
  let { outcome, detail } = session.end!;
  let grade: Awaited<ReturnType<Environment<Data, Database>['gradeEnd']>> = {
    reward: 0,
    success: false,
    parts: {},
    reasons: [detail],
  };
  if (outcome !== 'crashed' && outcome !== 'failed') {
    const view: EndView<Data, Database> = {
      task: session.task,
      database: session.database,
      messages: session.messages,
      steps: session.turns.map((turn) => turn.steps),
      outcome,
      detail,
    };
    try {
      grade = await environment.gradeEnd(view);
    } catch (error) {
      outcome = 'crashed';
      detail = `grading: ${message(error)}`;
      grade = { reward: 0, success: false, parts: {}, reasons: [detail] };
    }
  }
  const steps = session.turns.flatMap((turn) => turn.steps);
  return {
    id: session.id,
    environment: environment.name,
    task: session.task.id,
    type: session.task.type,
    split: session.task.split,
    seed: session.seed,
    attempt: session.attempt,
    messages: session.messages,
    turns: session.turns,
    reward: clamp(grade.reward),
    success: grade.success,
    parts: grade.parts,
    reasons: grade.reasons,
    outcome,
    detail,
    counts: {
      toolCalls: steps.length,
      mistakes: steps.filter((step) => step.mistake !== null).length,
      contextTokens: session.usage.context,
      completionTokens: session.usage.completion,
    },
    milliseconds,
  };
}

export const clamp = (reward: number): number => (Number.isFinite(reward) ? Math.min(1, Math.max(0, reward)) : 0);
export const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));
