/** Error text that every database can store (ruling 43). */

/** The limit of `last_error` in characters (outbox seed §8). */
const maxLength = 4000

/** Cuts the text to 4000 characters, and replaces NUL characters and lone surrogates. */
export const storableError = (text: string): string =>
  text.replaceAll("\0", "\u2400").slice(0, maxLength).toWellFormed()
