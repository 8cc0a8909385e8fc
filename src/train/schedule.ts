/** The learning rate of a step: linear warm-up, then constant, linear or cosine down to a floor. Pure in the step. */
export type Schedule = {
  readonly peak: number;
  readonly shape: 'constant' | 'linear' | 'cosine';
  /** Share of the steps spent warming up. */
  readonly warmup: number;
  /** The last step's rate as a share of the peak. */
  readonly floor: number;
};

export function learningRate(schedule: Schedule, step: number, steps: number): number {
  const warm = Math.round(schedule.warmup * steps);
  if (step < warm) return (schedule.peak * (step + 1)) / (warm + 1);
  const progress = steps - warm <= 1 ? 0 : (step - warm) / (steps - warm - 1);
  const { peak, floor } = schedule;
  switch (schedule.shape) {
    case 'constant':
      return peak;
    case 'linear':
      return peak * (1 - (1 - floor) * progress);
    case 'cosine':
      return peak * (floor + ((1 - floor) * (1 + Math.cos(Math.PI * progress))) / 2);
    default:
      return schedule.shape satisfies never;
  }
}
