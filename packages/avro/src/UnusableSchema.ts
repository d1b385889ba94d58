/**
 * What fails for good about schemas, in contrast to an outage of the registry, which is waited out.
 */
import { Schema } from "effect"

/** A schema that does not exist, or that cannot be used: asking again does not help. */
export class UnusableSchema extends Schema.TaggedError<UnusableSchema>()("UnusableSchema", {
  /** Which: `schema 7`, or `the schema of subject orders-value`. */
  schema: Schema.String,
  detail: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `${this.schema} cannot be used: ${this.detail}`
  }
}
