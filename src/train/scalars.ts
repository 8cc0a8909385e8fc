/** The figures of a step as TensorBoard and MLflow name them: by stage, and of each type of task. Pure. */
import type { StepMetrics } from './metrics.ts';

export function scalarsOf({ stage, values, taskTypes = {} }: StepMetrics): [tag: string, value: number][] {
  return [
    ...Object.entries(values).map(([name, value]): [string, number] => [`${stage}/${name}`, value]),
    ...Object.entries(taskTypes).flatMap(([type, { reward, success }]): [string, number][] => [
      [`task types/${type} reward`, reward],
      [`task types/${type} success`, success],
    ]),
  ];
}
