/** All faults there are. */
import type { Fault } from './fault.ts';
import { clockJumped } from './faults/clock-jumped.ts';
import { cursorDamaged } from './faults/cursor-damaged.ts';
import { databaseCut } from './faults/database-cut.ts';
import { databaseKilled } from './faults/database-killed.ts';
import { databaseSilent } from './faults/database-silent.ts';
import { databaseStopped } from './faults/database-stopped.ts';
import { diskFull } from './faults/disk-full.ts';
import { diskLimit } from './faults/disk-limit.ts';
import { engineKilled } from './faults/engine-killed.ts';
import { engineStopped } from './faults/engine-stopped.ts';
import { gatewayIdle } from './faults/gateway-idle.ts';
import { gatewayKilled } from './faults/gateway-killed.ts';
import { gatewayRestarted } from './faults/gateway-restarted.ts';
import { gatewayStopped } from './faults/gateway-stopped.ts';
import { hostileBodies } from './faults/hostile-bodies.ts';
import { journalDoubled } from './faults/journal-doubled.ts';
import { journalFlipped } from './faults/journal-flipped.ts';
import { journalSwapped } from './faults/journal-swapped.ts';
import { journalTorn } from './faults/journal-torn.ts';
import { journalTruncated } from './faults/journal-truncated.ts';
import { logFull } from './faults/log-full.ts';
import { recorderKilled } from './faults/recorder-killed.ts';
import { upstreamLying } from './faults/upstream-lying.ts';
import { upstreamSilent } from './faults/upstream-silent.ts';
import { upstreamSlow } from './faults/upstream-slow.ts';

export const faults: readonly Fault[] = [
  gatewayKilled,
  gatewayStopped,
  gatewayRestarted,
  gatewayIdle,
  recorderKilled,
  databaseKilled,
  databaseStopped,
  databaseSilent,
  databaseCut,
  diskFull,
  diskLimit,
  logFull,
  cursorDamaged,
  journalTorn,
  journalFlipped,
  journalTruncated,
  journalSwapped,
  journalDoubled,
  clockJumped,
  engineKilled,
  engineStopped,
  upstreamSilent,
  upstreamSlow,
  upstreamLying,
  hostileBodies,
];
