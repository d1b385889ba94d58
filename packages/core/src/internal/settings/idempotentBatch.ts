/**
 * A handler of batches that gets each record once: it claims the key of each record before the call, completes those that the call has handled, and gives up the others.
 *
 * A record whose key is done is left out. The call ends before the first record whose key somebody else works on, and before a record that has the key of an earlier one
 * of the batch: these come with the next call. So a batch waits for somebody else only while it holds no claim itself, and two batches never wait for each other.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Defaults from "../../Defaults.ts"
import type { Delivery } from "../../Delivery.ts"
import type { Claim, IdempotencyStoreError, Token } from "../../IdempotencyStore.ts"
import { toMillis } from "../base/durations.ts"
import * as BatchVerdict from "../failure/batchVerdict.ts"
import {
  AlreadyHandled,
  abandon,
  begin,
  claimed,
  complete,
  type Keys,
  keysFor,
  renew,
  type Settings
} from "./idempotent.ts"
import type { Store } from "./storeAnswers.ts"

/** The records of a batch that a call may have, by their positions. */
interface Claims {
  /** In ascending order. */
  readonly tokens: ReadonlyMap<number, Token>
  readonly already: ReadonlyArray<number>
  /** They come with the next call. */
  readonly rest: ReadonlyArray<number>
}

const atOnce = { concurrency: "unbounded", discard: true } as const

/** Wraps a handler of batches. Where it does not get all of the records, it ends with a `PartOfBatch`, as a value or as an error. */
export const idempotentBatch = <K, V, A, E, R>(
  options: Settings<K, V>,
  store: Store,
  handler: (deliveries: ReadonlyArray<Delivery<K, V>>) => Effect.Effect<A, E, R>
): ((
  deliveries: ReadonlyArray<Delivery<K, V>>
) => Effect.Effect<A | BatchVerdict.PartOfBatch, E | IdempotencyStoreError | BatchVerdict.PartOfBatch, R>) => {
  const lease = Duration.millis(toMillis(options.lease ?? Defaults.idempotency.leaseMillis))
  const retention = Duration.millis(toMillis(options.retention ?? Defaults.idempotency.retentionMillis))
  const keysOf = keysFor(options)
  return (deliveries) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const keys = deliveries.map(keysOf)
        const { tokens, already, rest } = yield* claim(store, keys, lease, restore)
        const given = Array.from(tokens.keys())
        if (given.length === 0) {
          return yield* Effect.fail(new BatchVerdict.PartOfBatch({ done: [], failed: [], rest, already }))
        }
        const renewing = yield* Effect.forkChild(
          Effect.forEach(tokens.values(), (token) => renew(store, token, lease), atOnce)
        )
        const records = given.map((at) => deliveries[at]!)
        const exit = yield* Effect.exit(restore(Effect.suspend(() => handler(records))))
        // Not waited for: what it may still say is said for claims that are over.
        renewing.interruptUnsafe()
        const verdict = Exit.isSuccess(exit)
          ? { done: given, failed: [], rest: [], already: [] }
          : BatchVerdict.of(exit.cause, given)
        const done = new Set(verdict?.done)
        yield* Effect.forEach(
          tokens,
          ([at, token]) => (done.has(at) ? complete(store, token, retention) : abandon(store, token)),
          atOnce
        )
        if (verdict === undefined || given.length === deliveries.length) return yield* exit
        const part = new BatchVerdict.PartOfBatch({ ...verdict, already, rest: [...verdict.rest, ...rest] })
        return Exit.isSuccess(exit) ? part : yield* Effect.fail(part)
      })
    )
}

/** Claims the keys of the next call. Waits only for the first one, while it holds none. */
const claim = Effect.fnUntraced(function* (
  store: Store,
  keys: ReadonlyArray<Keys>,
  lease: Duration.Duration,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.fn.Return<Claims, IdempotencyStoreError> {
  const [first] = keys
  if (first === undefined) return { tokens: new Map(), already: [], rest: [] }
  const token = yield* Effect.catchIf(
    claimed(store, first, lease, restore),
    (error): error is AlreadyHandled => error instanceof AlreadyHandled,
    () => Effect.succeed(undefined)
  )
  const distinct = keys.slice(1, firstRepeated(keys))
  const claims = yield* Effect.forEach(
    distinct,
    ({ key, formerKey }) => Effect.result(begin(store, key, formerKey, lease)),
    { concurrency: "unbounded" }
  )
  const began: ReadonlyArray<Result.Result<Claim, IdempotencyStoreError>> = [
    Result.succeed(token === undefined ? { _tag: "Done" } : { _tag: "Started", token }),
    ...claims
  ]
  const failed = began.find(Result.isFailure)
  const answers = began.flatMap((each) => (Result.isSuccess(each) ? [each.success] : []))
  const stopped = answers.findIndex(({ _tag }) => _tag === "InProgress")
  const end = failed !== undefined ? 0 : stopped === -1 ? answers.length : stopped
  // Without an answer of the store for each of them no record of the batch is handed over.
  yield* Effect.forEach(
    failed === undefined ? answers.slice(end) : answers,
    (each) => (each._tag === "Started" ? abandon(store, each.token) : Effect.void),
    atOnce
  )
  if (failed !== undefined) return yield* Effect.fail(failed.failure)
  const taken = answers.slice(0, end)
  return {
    tokens: new Map(taken.flatMap((each, at) => (each._tag === "Started" ? [[at, each.token] as const] : []))),
    already: taken.flatMap((each, at) => (each._tag === "Done" ? [at] : [])),
    rest: keys.slice(end).map((_, at) => end + at)
  }
})

/** The position of the first record with the key of an earlier one; the number of records when there is none. */
const firstRepeated = (keys: ReadonlyArray<Keys>): number => {
  const seen = new Set<string>()
  const at = keys.findIndex(({ key }) => seen.size === seen.add(key).size)
  return at === -1 ? keys.length : at
}
