/** The secrets of one cluster: read when they are needed, remembered to be taken out of texts. The only place where a secret leaves its `Redacted`. */
import { Effect, Redacted } from "effect"
import type { Text } from "../../Secret.ts"
import { type ClientFailure, failure, Local } from "../wire/errors.ts"

/** How long reading a secret, or getting a token, may take. */
export const timeoutMillis = 10_000

/** How many values are remembered: those of a few rotations. */
const remembered = 64

export interface Secrets {
  /** `what` names the secret in failures. */
  readonly read: (what: string, text: Text) => Effect.Effect<string, ClientFailure>
  /** Runs what gives credentials, within 10 seconds. */
  readonly guard: <A>(what: string, effect: Effect.Effect<A, unknown>) => Effect.Effect<A, ClientFailure>
  /** The value of a secret; from now on it is taken out of texts. */
  readonly reveal: (secret: Redacted.Redacted<string>) => string
  /** Takes the secrets that were read out of a text that comes from the client, the broker or a provider of secrets. */
  readonly scrub: (text: string) => string
}

const textOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.message === "" ? error.name : error.message
}

export const makeSecrets = (): Secrets => {
  const seen = new Set<string>()

  const reveal = (secret: Redacted.Redacted<string>): string => {
    const value = Redacted.value(secret)
    if (value === "") return value
    seen.delete(value)
    seen.add(value)
    for (const oldest of seen) {
      if (seen.size <= remembered) break
      seen.delete(oldest)
    }
    return value
  }

  const guard = <A>(what: string, effect: Effect.Effect<A, unknown>): Effect.Effect<A, ClientFailure> =>
    effect.pipe(
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.mapError((error) => failure(Local.credentials, `${what}: ${textOf(error)}`)),
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.fail(failure(Local.credentials, `${what}: not there within ${timeoutMillis} ms`))
      })
    )

  return {
    guard,
    reveal,
    read: (what, text) => {
      if (typeof text === "string") return Effect.succeed(text)
      return Redacted.isRedacted(text) ? Effect.sync(() => reveal(text)) : Effect.map(guard(what, text), reveal)
    },
    scrub: (text) => [...seen].reduce((safe, secret) => safe.replaceAll(secret, "<redacted>"), text)
  }
}
