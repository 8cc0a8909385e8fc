/** Lines over steps or time, by uPlot. Loaded by the pages that draw. */
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export type Line = {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** A colour of the theme; the accent without it. */
  readonly colour?: 'accent' | 'good' | 'bad' | 'warn' | 'muted';
};
type ChartProps = {
  readonly x: readonly number[];
  readonly lines: readonly Line[];
  /** Said to those who do not see it. */
  readonly label: string;
  readonly height?: number;
  /** Steps are numbers; times are seconds since 1970. */
  readonly isTime?: boolean;
  readonly format?: (value: number) => string;
};

const colourOf = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function Chart({ x, lines, label, height = 180, isTime = false, format = String }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const shape = JSON.stringify([lines.map(({ name, colour }) => [name, colour]), height, isTime]);
  const data = useRef<uPlot.AlignedData>([[]]);
  data.current = [[...x], ...lines.map(({ values }) => [...values])];
  const plot = useRef<uPlot | null>(null);
  const formatted = useRef(format);
  formatted.current = format;
  // biome-ignore lint/correctness/useExhaustiveDependencies: shape holds all of the lines that a new drawing needs
  useEffect(() => {
    const node = place.current;
    if (node === null) return;
    const draw = () => {
      plot.current?.destroy();
      const axis = { stroke: colourOf('muted'), grid: { stroke: colourOf('line'), width: 1 }, ticks: { show: false } };
      const tell = (_: uPlot, value: number | null) => (value === null ? '–' : formatted.current(value));
      plot.current = new uPlot(
        {
          width: node.clientWidth,
          height,
          scales: { x: { time: isTime } },
          axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => formatted.current(tick)) }],
          series: [
            { ...(isTime ? {} : { label: 'step' }) },
            ...lines.map(({ name, colour = 'accent' as const }) => ({
              ...{ label: name, stroke: colourOf(colour), width: 1.5, spanGaps: true, value: tell },
            })),
          ],
        },
        data.current,
        node,
      );
    };
    draw();
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: node.clientWidth, height }));
    sized.observe(node);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      sized.disconnect();
      themed.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.setData(data.current);
  });
  return <div className="chart" ref={place} role="img" aria-label={label} />;
}
