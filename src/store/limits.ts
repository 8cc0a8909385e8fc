/**
 * How long the database may take, by what it is asked for: no query is without a limit. The server ends a statement at its
 * limit; a little later the connection counts as silent here and is given up, so that whoever waits gets an error and the
 * next query a connection that works.
 */
export type Limits = {
  /** For one statement, on the server. */
  readonly statementMs: number;
  /** How long the server keeps a transaction, and its locks, for a client that says nothing more. */
  readonly idleTransactionMs: number;
};

/** Pages of the API, rollouts, upkeep: somebody waits. */
export const answering: Limits = { statementMs: 20_000, idleTransactionMs: 15_000 };
/** Small lookups that are made again every few seconds. */
export const watching: Limits = { statementMs: 3_000, idleTransactionMs: 5_000 };
/** A batch of the recorder, which has a limit of its own (collect/deliver.ts) that grows with a slow database. */
export const recording: Limits = { statementMs: 270_000, idleTransactionMs: 10_000 };
/** Whole days of turns are read, summed, dropped or migrated. */
export const scanning: Limits = { statementMs: 3_600_000, idleTransactionMs: 600_000 };

/** The answer to a statement that was ended by the server has this long to arrive. */
const graceMs = 1_500;

/** When a query without an answer is given up here. */
export const givenUpAfter = ({ statementMs }: Limits): number => statementMs + graceMs;

/** Keeps a peer that is gone from holding a connection for hours; ignored where the system does not know it. */
const keepalive = 'set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3';

/** What a session is told when it begins. */
export const sessionSettings = ({ statementMs, idleTransactionMs }: Limits): string =>
  `set statement_timeout = ${statementMs}; set idle_in_transaction_session_timeout = ${idleTransactionMs}; ${keepalive}`;
