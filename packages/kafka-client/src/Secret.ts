/**
 * Secrets that may change while the program runs. A secret that is an Effect is read for every connection and every authentication, so a new
 * password, key or certificate takes effect without a restart. `Config.Redacted("KAFKA_PASSWORD")` reads an environment variable.
 */
import { readFile } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** A fixed secret, or an Effect that reads it. When the Effect fails or takes more than 10 seconds, connecting fails with `CredentialsUnavailable`. */
export type Secret = Redacted.Redacted<string> | Effect.Effect<Redacted.Redacted<string>, unknown>

/** A text that is not secret but may be stored and rotated like a secret: a user name, a certificate. */
export type Text = string | Secret

/** A secret's file cannot be read. */
export class SecretFileUnreadable extends Schema.TaggedError<SecretFileUnreadable>()("SecretFileUnreadable", {
  /** Path of the file. */
  path: Schema.String,
  /** Code of the system's error, such as `ENOENT`. */
  code: Schema.String
}) {
  override get message(): string {
    return `the file '${this.path}' cannot be read (${this.code})`
  }
}

/** Reads a file (UTF-8) without line breaks at its end, such as a secret that Kubernetes or Docker mounts. Fails with `SecretFileUnreadable`. */
export const fromFile = (path: string): Effect.Effect<Redacted.Redacted<string>, SecretFileUnreadable> =>
  Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (error) => new SecretFileUnreadable({ path, code: (error as NodeJS.ErrnoException).code ?? String(error) })
  }).pipe(Effect.map((text) => Redacted.make(text.replace(/[\r\n]+$/, ""))))
