/**
 * Errors named after the boundary that was crossed. A class exists only where someone catches it; everything else is a
 * plain Error with a full sentence. `retryable` says whether trying the same thing again can help.
 */
export class BoundaryError extends Error {
  readonly retryable: boolean;

  constructor(message: string, options: { cause?: unknown; retryable?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.retryable = options.retryable ?? false;
  }
}

/** The settings are wrong: says every problem and the way out. */
export class ConfigError extends BoundaryError {}
/** The database cannot be reached or refused the write. */
export class StoreError extends BoundaryError {}
/** The engine refused a call or died. */
export class EngineError extends BoundaryError {}
/** An artifact, or the place where artifacts are kept, is not what it must be. */
export class ArtifactError extends BoundaryError {
  /** Whether it is simply not there. */
  readonly missing: boolean;

  constructor(message: string, options: { cause?: unknown; retryable?: boolean; missing?: boolean } = {}) {
    super(message, options);
    this.missing = options.missing ?? false;
  }
}
/** What was named does not exist; says where those that do are listed. */
export class NotFoundError extends BoundaryError {}
/** What was asked for cannot be done as things stand; says what stands in the way. */
export class ConflictError extends BoundaryError {}
/** A release does not fit where it is to serve, or that could not be told, which another try may change (`retryable`). */
export class UnfitError extends ConflictError {}
/** What a client sent is not acceptable; `status` is the HTTP status it gets. */
export class RequestError extends BoundaryError {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
