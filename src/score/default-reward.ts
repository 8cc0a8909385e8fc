/** The reward when the settings name none: what happened counts most, how it was done next, what users said last. */
import { feedback } from './feedback.ts';
import { outcome } from './outcome.ts';
import { toolUse } from './tool-use.ts';
import { weighted } from './weighted.ts';

export const defaultReward = weighted({
  resolved: [0.5, outcome('resolved')],
  tools: [0.3, toolUse()],
  feedback: [0.2, feedback()],
});
