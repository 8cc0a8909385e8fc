/**
 * How much the gateway holds at once, all requests together: places (requests admitted and not yet done) and bytes
 * (bodies as they arrive and while they are in flight, answers kept for recording). Who finds no room is refused before
 * anything more is read.
 *
 * Copies of answers may fill half of it: recording must not turn callers away.
 */
export class Budget {
  readonly bytes: number;
  readonly places: number;
  used = 0;
  taken = 0;
  /** Told of what a request held, once nobody holds it. */
  readonly letGo: (bytes: number) => void;

  constructor(bytes: number, places: number, letGo: (bytes: number) => void = () => {}) {
    this.bytes = bytes;
    this.places = places;
    this.letGo = letGo;
  }

  /** Null when every place is taken. */
  enter(): Claim | null {
    if (this.taken >= this.places) return null;
    this.taken++;
    return new Claim(this);
  }
}

/** What one request holds. `leave` gives all of it back, once, however often it is called. */
export class Claim {
  readonly #budget: Budget;
  #bytes = 0;
  #isOpen = true;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  fits(bytes: number): boolean {
    return this.#budget.used + bytes <= this.#budget.bytes;
  }

  /** For what the request cannot do without. */
  take(bytes: number): boolean {
    return this.#take(bytes, this.#budget.bytes);
  }

  /** For a copy that may be cut. */
  keep(bytes: number): boolean {
    return this.#take(bytes, this.#budget.bytes / 2);
  }

  #take(bytes: number, limit: number): boolean {
    if (!this.#isOpen || this.#budget.used + bytes > limit) return false;
    this.#budget.used += bytes;
    this.#bytes += bytes;
    return true;
  }

  leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#budget.used -= this.#bytes;
    this.#budget.taken--;
    this.#budget.letGo(this.#bytes);
  }
}
