/**
 * Text in one form (Unicode's NFKC), to be compared: letters of every width, accents however they were typed.
 *
 * Accents are put in order on the way, and in a run of them without a letter each is moved past all that go behind it: 64,000 of
 * them take seconds, a megabyte an hour. So a run is broken up where it is longer than any language has, as Unicode's
 * stream-safe format does it (UAX #15), and the time is in proportion to the text.
 */
const manyAccents = /[\p{M}\u0e33\u0eb3\uff9e\uff9f]{30}/gu; // marks, and what becomes one

/** Combining grapheme joiner: says nothing, and nothing is moved past it. */
const joiner = '\u034f';

export const normalForm = (text: string): string => text.replace(manyAccents, `$&${joiner}`).normalize('NFKC');
