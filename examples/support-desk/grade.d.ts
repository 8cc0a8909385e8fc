/**
 * Grades the agent against policy.md.
 *
 * In the end: success means all five parts hold. Reward 1 for success, less 0.1 for each wasted move (0.7 at least), and 0
 * otherwise, so nothing can be earned by looking busy.
 *   done       the customer left, within all limits
 *   state      the database is as the policy wants it
 *   conduct    nothing was changed or escalated that the policy does not call for, and nothing twice
 *   evidence   what had to be looked up was, before anything was done or said
 *   told       the last words hold the facts and claim nothing untrue
 *
 * Per turn, for turn-level credit, against the next move of the plan that has not been made yet:
 *   format 0.2     readable, one call or a text, a tool that exists, arguments that fit its schema
 *   choice 0.4     the right tool, or a text where one is due
 *   arguments 0.2  of the right tool: the right order, town, queue, or an article that answers; of a text: its facts
 *   news 0.2       not a repetition and not an error; a text: not said too early
 * A turn with a forbidden change gets 0 whatever its parts.
 */
import { type EndView, type Grade, type ToolStep, type TurnView } from '../../src/simulate/environment.ts';
import { type Move } from './policy.ts';
import { type Shop } from './shop.ts';
import type { DeskData } from './tasks.ts';
export declare function gradeEnd(view: EndView<DeskData, Shop>): Grade & {
    success: boolean;
};
export declare function gradeTurn(view: TurnView<DeskData, Shop>): Grade;
/** The first move of the plan that has not been made; the reply, once all others have. */
export declare function nextMove(moves: readonly Move[], steps: readonly ToolStep[], customer: number, data: DeskData): Move;
