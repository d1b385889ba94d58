/** The bearer token that all connections to a cluster share: reused while it is fresh, and requested by one connection on behalf of all. */
import { UserFunction } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"
import type { SaslToken, Token } from "./options.ts"
import { isSecret, type Secrets, unusable } from "./secrets.ts"

/** The part of a token's life after which it is replaced: the default of Kafka's `sasl.login.refresh.window.factor`. */
const refreshWindowFactor = 0.8

/** Kafka's `sasl.login.retry.backoff.ms` and `sasl.login.retry.backoff.max.ms`. */
const minBackoffMillis = 100
const maxBackoffMillis = 10_000

/** A token that expires on its way to the broker is useless. */
const travelMillis = 1_000

/** The token, in messages. */
const what = "the bearer token"

/** The token that a provider gave: it may be anything where types do not hold. */
const tokenOf = (given: unknown): Effect.Effect<Token, ClientFailure> => {
  if (isSecret(given)) return Effect.succeed({ value: given })
  const read = readToken(given)
  if (read === undefined || !isSecret(read.value)) return Effect.fail(unusable(what, given, "a Redacted or a Token"))
  const { expiresAt } = read
  if (expiresAt === undefined || (typeof expiresAt === "number" && !Number.isNaN(expiresAt)))
    return Effect.succeed(read)
  // It is shown by its kind: it may be the token.
  const found = typeof expiresAt === "number" ? String(expiresAt) : UserFunction.kindOf(expiresAt)
  return Effect.fail(
    failure(Local.credentials, `${what}: its expiresAt is ${found}, and epoch milliseconds are expected`)
  )
}

/** The parts of a token as they are now; undefined where a getter or a Proxy throws. */
const readToken = (given: unknown): Token | undefined => {
  if (typeof given !== "object" || given === null) return undefined
  try {
    const { value, expiresAt, extensions } = given as Token
    return { value, ...(expiresAt !== undefined && { expiresAt }), ...(extensions !== undefined && { extensions }) }
  } catch {
    return undefined
  }
}

interface CachedToken {
  readonly token: Token
  /** Epoch milliseconds. 0: only the connections that waited for this token use it. */
  readonly replaceAt: number
}

interface FailedAttempt {
  readonly failed: ClientFailure
  readonly backoffMillis: number
  /** Epoch milliseconds before which the provider is not called again. */
  readonly until: number
}

export interface Tokens {
  /** A token that is valid now. */
  readonly get: Effect.Effect<Token, ClientFailure>
  /** A broker has refused this token: it is not used again. */
  readonly invalidate: (token: Token) => void
}

export const makeTokens = (provider: SaslToken["token"], secrets: Secrets): Tokens => {
  const oneAtATime = Semaphore.makeUnsafe(1)
  let cached: CachedToken | undefined
  let failedAttempt: FailedAttempt | undefined
  /** Calls of the provider that have ended. A caller accepts a token that was requested after it began to wait. */
  let attempts = 0

  const stillValid = (now: number): Effect.Effect<Token, ClientFailure> | undefined =>
    cached !== undefined && now + travelMillis < (cached.token.expiresAt ?? 0)
      ? Effect.succeed(cached.token)
      : undefined

  const request = Effect.fnUntraced(function* (now: number) {
    const result = yield* Effect.result(Effect.flatMap(secrets.runBounded(what, provider), tokenOf))
    attempts++
    if (result._tag === "Failure") {
      const backoffMillis =
        failedAttempt === undefined ? minBackoffMillis : Math.min(maxBackoffMillis, failedAttempt.backoffMillis * 2)
      const until = (yield* Clock.currentTimeMillis) + backoffMillis
      failedAttempt = { failed: result.failure, backoffMillis, until }
      return yield* stillValid(now) ?? Effect.fail(result.failure)
    }
    const token = result.success
    failedAttempt = undefined
    const replaceAt = token.expiresAt === undefined ? 0 : now + (token.expiresAt - now) * refreshWindowFactor
    cached = { token, replaceAt }
    return token
  })

  const get = Effect.suspend(() => {
    const before = attempts
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const isFresh = attempts > before && failedAttempt === undefined
      if (cached !== undefined && (now < cached.replaceAt || isFresh)) return cached.token
      if (failedAttempt !== undefined && now < failedAttempt.until) {
        return yield* stillValid(now) ?? Effect.fail(failedAttempt.failed)
      }
      return yield* request(now)
    }).pipe(oneAtATime.withPermits(1))
  })

  return {
    get,
    invalidate: (token) => {
      if (cached?.token === token) cached = undefined
    }
  }
}
