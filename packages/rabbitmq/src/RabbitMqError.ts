/**
 * The failures of RabbitMQ, in words that say what to do. It is the cause of the `MessagingException` that callers get.
 */
import * as Schema from "effect/Schema"

/**
 * The kinds of failures.
 *
 * - `Unreachable`: no connection, or it was lost. The client connects again by itself.
 * - `TlsFailed`: the certificate is not trusted, has another name, or the port takes no TLS. The client tries again, as certificates are renewed.
 * - `LoginRefused`: user, password or virtual host are wrong.
 * - `AccessRefused`: the user lacks a permission, or the name is reserved.
 * - `DeclaredOtherwise`: a queue or an exchange of this name exists with other settings. The text names the first setting that differs, with both values.
 * - `Unroutable`: no queue takes the message. It was not kept.
 * - `QueueFull`: a queue refused the message, because it is full. It was not kept there.
 * - `NotConfirmed`: no confirmation within the time limit. The message may be kept or not.
 * - `Unencodable`: the message cannot be written in AMQP: a key, a header or a name is too long, or a header is reserved.
 * - `Refused`: another answer of RabbitMQ that is no success.
 */
export const reasons = [
  "Unreachable",
  "TlsFailed",
  "LoginRefused",
  "AccessRefused",
  "DeclaredOtherwise",
  "Unroutable",
  "QueueFull",
  "NotConfirmed",
  "Unencodable",
  "Refused"
] as const

/** A kind of failure. */
export type Reason = (typeof reasons)[number]

const permanent: ReadonlySet<Reason> = new Set(["LoginRefused", "AccessRefused", "DeclaredOtherwise", "Unencodable"])

/** A failure of RabbitMQ, or of the way to it. */
export class RabbitMqError extends Schema.TaggedError<RabbitMqError>()("RabbitMqError", {
  /** The kind. */
  reason: Schema.Literals(reasons),
  /** Says what happened, and what helps. Never a secret. */
  detail: Schema.String
}) {
  /** Whether the same call may succeed later without anybody changing something. */
  get retryable(): boolean {
    return !permanent.has(this.reason)
  }
  override get message(): string {
    return this.detail
  }
}
