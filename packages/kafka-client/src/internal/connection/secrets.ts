/** The secrets of one cluster: read on demand, and remembered so that they can be redacted from texts. Only this file takes a secret out of its `Redacted`. */
import { Kinds, UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"
import type { Text } from "../../Secret.ts"

/** Longest time to read a secret or to get a token. */
export const timeoutMillis = 10_000

/** How many values are remembered: enough for a few rotations. */
const maxRemembered = 64

export interface Secrets {
  /** Reads a secret or a plain text. `what` names it in failures. */
  readonly read: (what: string, text: Text) => Effect.Effect<string, ClientFailure>
  /**
   * Runs a provider of credentials. Its failure, its defect, and running for more than 10 seconds become failures named `what`. One that resists its interruption then is left
   * behind.
   */
  readonly runBounded: <A>(what: string, effect: Effect.Effect<A, unknown>) => Effect.Effect<A, ClientFailure>
  /** The value of a secret. From now on `redact` replaces it. */
  readonly reveal: (secret: Redacted.Redacted<string>) => string
  /** Replaces secrets that were read, in a text from a library, a broker or a provider. */
  readonly redact: (text: string) => string
}

/** A provider may fail with anything: a Proxy, or an object that has no text. */
const textOf = (error: unknown): string => {
  try {
    if (!(error instanceof Error)) return String(error)
    return error.message === "" ? error.name : error.message
  } catch {
    return "it failed with something that has no text"
  }
}

/** A provider is a user's, and what it says may hold secrets: the log gets nothing of a rejection. */
const called = <A>(what: string, effect: Effect.Effect<A, unknown>): Effect.Effect<A, unknown> => {
  if (UserFunction.isEffect(effect)) {
    return UserFunction.runBounded(
      what,
      UserFunction.callEffect(what, () => effect)
    )
  }
  UserFunction.attend(effect, () => {})
  return Effect.die(new UserFunction.NotAnEffect(`${UserFunction.kindOf(effect)} was given; an Effect is expected`))
}

/** A failure that says what was given, and does not show it: it may be the secret. */
export const unusable = (what: string, given: unknown, expected: string): ClientFailure =>
  failure(Local.credentials, `${what}: ${UserFunction.kindOf(given)} was given, and ${expected} is expected`)

/** Whether a provider gave a secret, and no plain text. */
export const isSecret = (given: unknown): given is Redacted.Redacted<string> => Kinds.redacted("", given).length === 0

export const makeSecrets = (): Secrets => {
  const seen = new Set<string>()

  const reveal = (secret: Redacted.Redacted<string>): string => {
    const value = Redacted.value(secret)
    if (value === "") return value
    seen.delete(value)
    seen.add(value)
    for (const oldest of seen) {
      if (seen.size <= maxRemembered) break
      seen.delete(oldest)
    }
    return value
  }

  const guard = <A>(what: string, effect: Effect.Effect<A, unknown>): Effect.Effect<A, ClientFailure> =>
    called(what, effect).pipe(
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.mapError((error) => failure(Local.credentials, `${what}: ${textOf(error)}`)),
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.fail(failure(Local.credentials, `${what}: not there within ${timeoutMillis} ms`))
      })
    )

  return {
    runBounded: guard,
    reveal,
    read: (what, text) => {
      if (typeof text === "string") return Effect.succeed(text)
      if (Redacted.isRedacted(text)) {
        // It may be wiped by now.
        return Effect.suspend(() =>
          isSecret(text)
            ? Effect.succeed(reveal(text))
            : Effect.fail(unusable(what, text, "a Redacted with a text in it"))
        )
      }
      return Effect.flatMap(guard(what, text), (given) =>
        isSecret(given)
          ? Effect.succeed(reveal(given))
          : Effect.fail(unusable(what, given, "a Redacted with a text in it"))
      )
    },
    // The longest first: a secret may be the beginning of another one.
    redact: (text) =>
      [...seen]
        .sort((a, b) => b.length - a.length)
        .reduce((safe, secret) => safe.replaceAll(secret, "<redacted>"), text)
  }
}
