/**
 * What the assertions of this package fail with: what was expected, and all that was there.
 */
import { Schema } from "effect"

export class Unexpected extends Schema.TaggedError<Unexpected>()("Unexpected", {
  /** What it is about, such as `dead letters of topic 'orders'`. */
  subject: Schema.String,
  expected: Schema.String,
  /** What was there, as text. */
  found: Schema.String
}) {
  override get message(): string {
    return `${this.subject}\n  expected: ${this.expected.replaceAll("\n", "\n    ")}\n  found:    ${this.found.replaceAll("\n", "\n    ")}`
  }
}
