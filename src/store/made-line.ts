/**
 * A turn's line where the turn is made: what the journal gets, and the line that it is once it is there. The database's row is written
 * at once, from values that are at hand, so that nothing is read again on the way into the database; the bytes are read only
 * when somebody wants what is in them (an erasure younger than the turn, a refusal).
 */

import type { Sibling } from '../collect/sibling.ts';
import type { Turn } from '../collect/turn.ts';
import { UnfitValue } from './copy.ts';
import { type CarriedPart, encodeLine, encodeTurn, type Line, type Naming, readLine } from './line.ts';
import { beginning, readSignedLine, signLine } from './signed-line.ts';
import { storableText } from './storable.ts';
import { type TurnValues, type WrittenTurn, writeTurn } from './turn-rows.ts';

export type MadeLine = {
  readonly text: string;
  /** `payload`: the text as the bytes that are in the journal now. */
  journalled(payload: Buffer): Line;
};

/** `by`: the client key that it came with. */
export function makeLine(turn: Turn, naming: Naming, by: string | null | undefined): MadeLine {
  const { text, values, carries } = encodeTurn(turn, naming, beginning(by));
  const agent = storableText(turn.agent);
  const made = { agent, at: turn.startedAt, by: by ?? undefined, turn: fitting(values), carries };
  return { text, journalled: (payload) => new JournalledTurn(payload, made) };
}

export const makeSiblingLine = (sibling: Sibling, by: string | null | undefined): MadeLine => ({
  text: signLine(encodeLine({ kind: 'sibling', sibling }), by),
  journalled: readSignedLine,
});

/** A turn that does not fit is journalled as others are: whoever writes it into the database finds out, and puts it aside. */
function fitting(values: TurnValues): WrittenTurn | undefined {
  try {
    return writeTurn(values);
  } catch (error) {
    if (error instanceof UnfitValue) return undefined;
    throw error;
  }
}

type Made = Pick<Line, 'agent' | 'at' | 'by' | 'turn'> & { readonly carries: boolean };

class JournalledTurn implements Line {
  readonly kind = 'turn';
  readonly agent: string;
  readonly at: number;
  readonly by: string | undefined;
  readonly turn: WrittenTurn | undefined;
  readonly #payload: Buffer;
  readonly #carries: boolean;

  constructor(payload: Buffer, { agent, at, by, turn, carries }: Made) {
    this.agent = agent;
    this.at = at;
    this.by = by;
    this.turn = turn;
    this.#payload = payload;
    this.#carries = carries;
  }
  get json(): Buffer {
    return readLine(this.#payload).json;
  }
  get messages(): readonly CarriedPart[] {
    return this.#carries ? readLine(this.#payload).messages : [];
  }
}
