/** How long things are kept. Weights, metrics, reports and the audit log hold nobody's words and are kept. */
import { z } from 'zod';
import { addDays, dayOf } from '../store/partitions.ts';

const days = (kept: number) =>
  z.int({ error: 'a whole number of days, or null to keep for good' }).min(1).max(36_500).nullable().default(kept);

export const retentionSettings = z.strictObject({
  days: days(90).meta({
    unit: 'days',
    description: 'Conversations, with their signals, business keys and scores; null keeps them for good.',
  }),
  datasets: days(90).meta({
    unit: 'days',
    description: 'Datasets, counted from when they were made; null keeps them for good.',
  }),
  afterTraining: days(90).meta({
    unit: 'days',
    description:
      'Days of conversations, and datasets, that were trained on, counted from the first run on them, however long they are kept otherwise; null sets no such limit.',
  }),
});
export type RetentionSettings = Readonly<z.output<typeof retentionSettings>>;

/** Before when things go: a day, a moment in ms since epoch. null: they are kept. */
export type Limits = {
  readonly day: string | null;
  readonly datasets: number | null;
  /** What was trained on before this moment goes too. */
  readonly trained: number | null;
};

const dayMs = 86_400_000;

/** A day is kept until the last moment of it is old enough. */
export const limitsAt = ({ days: kept, datasets, afterTraining }: RetentionSettings, now: number): Limits => ({
  day: kept === null ? null : addDays(dayOf(now), -kept),
  datasets: datasets === null ? null : now - datasets * dayMs,
  trained: afterTraining === null ? null : now - afterTraining * dayMs,
});
