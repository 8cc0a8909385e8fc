/** Turn after turn: what solved before, what after, and how sure that is. */
import { Tag } from '../parts/figure.tsx';
import { Time } from '../parts/time.tsx';
import { money, percent, points } from '../words.ts';
import type { Overview } from './overview.tsx';

type Gain = Overview['gains'][number];

const height = 150;
const y = (share: number): number => 8 + (1 - Math.max(0, Math.min(1, share))) * (height - 16);

/** At most so many turns are drawn, the newest. */
const most = 24;

export function Gains({ gains }: { readonly gains: readonly Gain[] }) {
  const shown = gains.slice(-most);
  const step = 44;
  const width = Math.max(320, shown.length * step + 40);
  return (
    <>
      <svg
        className="gains"
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={shown.map(sentenceOf).join(' ')}
      >
        {[0, 0.5, 1].map((share) => (
          <g key={share} className="grid">
            <line x1="34" x2={width} y1={y(share)} y2={y(share)} />
            <text x="0" y={y(share) + 4}>
              {percent(share, 0)}
            </text>
          </g>
        ))}
        {shown.map((gain, at) => {
          const x = 56 + at * step;
          const [low = 0, high = 0] = gain.interval;
          return (
            <g key={gain.turn} className={gain.promoted ? 'promoted' : 'kept'}>
              <title>{sentenceOf(gain)}</title>
              <line className="interval" x1={x + 6} x2={x + 6} y1={y(gain.before + low)} y2={y(gain.before + high)} />
              <line className="change" x1={x - 6} x2={x + 6} y1={y(gain.before)} y2={y(gain.after)} />
              <circle className="before" cx={x - 6} cy={y(gain.before)} r="3" />
              <circle className="after" cx={x + 6} cy={y(gain.after)} r="4" />
            </g>
          );
        })}
      </svg>
      <ul className="gain-list">
        {shown
          .toReversed()
          .slice(0, 5)
          .map((gain) => (
            <li key={gain.turn}>
              <span>Turn {gain.turn}</span>
              <span>
                {percent(gain.before)} → <strong>{percent(gain.after)}</strong>
              </span>
              <span className="note">
                {points(gain.interval[0] ?? 0)} to {points(gain.interval[1] ?? 0)} points
              </span>
              <Tag tone={gain.promoted ? 'good' : 'plain'}>{gain.promoted ? 'promoted' : gain.verdict}</Tag>
              {gain.money > 0 && <span className="note">{money(gain.money)}</span>}
              <span className="note">{gain.endedAt === null ? 'under way' : <Time at={gain.endedAt} />}</span>
            </li>
          ))}
      </ul>
    </>
  );
}

const sentenceOf = ({ turn, before, after, interval, promoted, verdict }: Gain): string =>
  `Turn ${turn}: ${percent(before)} to ${percent(after)}, ${points(interval[0] ?? 0)} to ${points(interval[1] ?? 0)} points, ${promoted ? 'promoted' : verdict}.`;
