/** The permanent failure of a schema. An outage of the registry is not one: requests wait until it ends. */
import * as Schema from "effect/Schema"

/** A schema does not exist or cannot be used. Repeating the request does not help. */
export class UnusableSchema extends Schema.TaggedError<UnusableSchema>()("UnusableSchema", {
  /** The schema: `schema 7`, or `the schema of subject orders-value`. */
  schema: Schema.String,
  /** The reason. */
  detail: Schema.String
}) {
  /** Always false: repeating the request does not help. */
  readonly retryable = false
  override get message(): string {
    return `${this.schema} cannot be used: ${this.detail}`
  }
}
