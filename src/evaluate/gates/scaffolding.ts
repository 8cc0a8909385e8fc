/**
 * Scaffolding: what stands around an answer and is none, such as headings, announcements, summaries of itself and closing
 * phrases. Judges take it for care. Scaffolding in changes of code is a scorer's business, not this file's.
 */
import type { Gate, GatedCase } from './gate.ts';
import { markGate, says } from './marked.ts';

export const scaffold =
  /^[^\S\r\n]*(?:#{1,6} |[-*•] \S|\d+[.)] \S|\*\*[^*]+\*\*\s*(?::\s*)?$|step \d+\b)|\b(?:as an ai|let me (?:think|break|walk|explain|first|start)|step[- ]by[- ]step|here(?:['’]s| is| are) (?:my|the|an?|your) (?:\w+ )?(?:analysis|reasoning|plan|summary|answer|response|breakdown|overview|steps)|in (?:summary|conclusion)|to (?:summari[sz]e|sum up|recap)|(?:final|my) (?:answer|response) (?:is|:)|i hope (?:this|that) helps|great question|(?:please )?(?:do not|don['’]t) hesitate|(?:any|if you have) (?:other|further|more|additional) questions|thank you for (?:your (?:patience|question|message|understanding)|reaching out|contacting|asking)|after careful (?:consideration|review|analysis)|is there anything else|happy to (?:help|assist)|todo|placeholder)\b/imu;

/** `limit`: points by which the share of attempts with scaffolding may rise. */
export const scaffoldingGate = (cases: readonly GatedCase[], limit: number): Gate =>
  markGate(cases, {
    name: 'scaffolding',
    shows: (attempt) => says(attempt, scaffold),
    limit,
    atEqualSuccess: true,
    says: 'have scaffolding around the answer',
    means: 'dressing that makes no answer better',
  });
