/**
 * The error of this package's assertions: the expectation, and everything that was found.
 */
import * as Schema from "effect/Schema"

/** An assertion failed. */
export class Unexpected extends Schema.TaggedError<Unexpected>()("Unexpected", {
  /** The subject of the assertion, such as `dead letters of topic 'orders'`. */
  subject: Schema.String,
  /** The expectation as text. */
  expected: Schema.String,
  /** Everything that was found, as text. */
  found: Schema.String
}) {
  override get message(): string {
    return `${this.subject}\n  expected: ${this.expected.replaceAll("\n", "\n    ")}\n  found:    ${this.found.replaceAll("\n", "\n    ")}`
  }
}
