/** Error text that every database can store (ruling 43). */

/** The seed's limit of `last_error`. */
const maxLength = 4000

/** Cut to 4000 characters, without NUL characters and lone surrogates. */
export const storableError = (text: string): string =>
  text.replaceAll("\0", "\u2400").slice(0, maxLength).toWellFormed()
