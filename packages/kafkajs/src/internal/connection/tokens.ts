/** The bearer token that all connections to a cluster share: kept while it is young, and asked for by one connection for all. */
import { Clock, Effect, Redacted, Semaphore } from "effect"
import type { ClientFailure } from "../wire/errors.ts"
import type { SaslToken, Token } from "./options.ts"
import type { Secrets } from "./secrets.ts"

/** The part of its life after which a token is replaced: the default of Kafka's `sasl.login.refresh.window.factor`. */
const youth = 0.8

/** `sasl.login.retry.backoff.ms` and its maximum. */
const firstRestMillis = 100
const longestRestMillis = 10_000

/** A token that expires on its way is of no use. */
const travelMillis = 1_000

interface Held {
  readonly token: Token
  /** 0: it is used by those alone that waited for it. */
  readonly replaceAt: number
}

interface Refused {
  readonly failed: ClientFailure
  readonly restMillis: number
  readonly until: number
}

export interface Tokens {
  readonly get: Effect.Effect<Token, ClientFailure>
  /** A broker does not accept this one: it is not given out again. */
  readonly drop: (token: Token) => void
}

export const makeTokens = (provider: SaslToken["token"], secrets: Secrets): Tokens => {
  const oneAtATime = Semaphore.makeUnsafe(1)
  let held: Held | undefined
  let refused: Refused | undefined
  /** How many answers there were: one that was asked for after somebody came is good enough for him. */
  let answers = 0

  const valid = (now: number): Effect.Effect<Token, ClientFailure> | undefined =>
    held !== undefined && now + travelMillis < (held.token.expiresAt ?? 0) ? Effect.succeed(held.token) : undefined

  const ask = Effect.fnUntraced(function* (now: number) {
    const given = yield* Effect.result(secrets.guard("the bearer token", provider))
    answers++
    if (given._tag === "Failure") {
      const restMillis = Math.min(longestRestMillis, refused === undefined ? firstRestMillis : refused.restMillis * 2)
      refused = { failed: given.failure, restMillis, until: (yield* Clock.currentTimeMillis) + restMillis }
      return yield* valid(now) ?? Effect.fail(given.failure)
    }
    const token = Redacted.isRedacted(given.success) ? { value: given.success } : given.success
    refused = undefined
    held = { token, replaceAt: token.expiresAt === undefined ? 0 : now + (token.expiresAt - now) * youth }
    return token
  })

  const get = Effect.suspend(() => {
    const before = answers
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (held !== undefined && (now < held.replaceAt || (answers > before && refused === undefined))) return held.token
      if (refused !== undefined && now < refused.until) return yield* valid(now) ?? Effect.fail(refused.failed)
      return yield* ask(now)
    }).pipe(oneAtATime.withPermits(1))
  })

  return {
    get,
    drop: (token) => {
      if (held?.token === token) held = undefined
    }
  }
}
