/**
 * Secrets that may change while the program runs. A secret that is an Effect is read again for every connection and every authentication, so a new
 * password, key or certificate is picked up without a restart. The variable of the environment is `Config.Redacted("KAFKA_PASSWORD")`.
 */
import { readFile } from "node:fs/promises"
import { Effect, Redacted, Schema } from "effect"

/** A fixed secret, or how to read it. An Effect that fails, or takes more than 10 seconds, is `CredentialsUnavailable` at the Broker port. */
export type Secret = Redacted.Redacted<string> | Effect.Effect<Redacted.Redacted<string>, unknown>

/** A text that is no secret but may be kept, and rotated, like one: a user name, a certificate. */
export type Text = string | Secret

/** The file of a secret cannot be read. */
export class SecretFileUnreadable extends Schema.TaggedError<SecretFileUnreadable>()("SecretFileUnreadable", {
  path: Schema.String,
  code: Schema.String
}) {
  override get message(): string {
    return `the file '${this.path}' cannot be read (${this.code})`
  }
}

/** The text of a file (UTF-8) without line breaks at its end, as mounted by Kubernetes and Docker. */
export const fromFile = (path: string): Effect.Effect<Redacted.Redacted<string>, SecretFileUnreadable> =>
  Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (error) => new SecretFileUnreadable({ path, code: (error as NodeJS.ErrnoException).code ?? String(error) })
  }).pipe(Effect.map((text) => Redacted.make(text.replace(/[\r\n]+$/, ""))))
