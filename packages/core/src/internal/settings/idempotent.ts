/**
 * A handler that runs once per key: it claims the key first, and completes it when it has succeeded (OFF-19, OFF-21).
 *
 * A failure of the store never loses a record and never holds one up for long: every call of it is bounded. When `begin` fails, the record fails
 * before its handler runs. When `complete` fails, the success stands, and the record may be handled once more if it is delivered again.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as Defaults from "../../Defaults.ts"
import type { Delivery } from "../../Delivery.ts"
import type { Claim, IdempotencyStoreError, KeyState, Options, Token } from "../../IdempotencyStore.ts"
import * as UserFunction from "../../UserFunction.ts"
import { escaped } from "../base/derivedNames.ts"
import { toMillis } from "../base/durations.ts"
import * as LogLine from "../base/logLine.ts"
import { isInstance } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import { defaultCluster } from "./bindingKey.ts"
import * as StoreAnswers from "./storeAnswers.ts"

/** The record's work is done already: it is settled as skipped, and is no failure. */
export class AlreadyHandled {
  readonly _tag = "AlreadyHandled"
}

export const alreadyHandled = new AlreadyHandled()

/** Whether a handler ended because its work was done already. */
export const isAlreadyHandled = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && isInstance(reason.error, AlreadyHandled))

/** Between two looks at a claim of somebody else: doubled up to the longest. */
const firstPauseMillis = 50
const longestPauseMillis = 1_000

const completeAgain = Schedule.upTo(Schedule.exponential("100 millis"), { times: 4 })

/** The keys of a delivery's work. Former versions knew it by another key, which is looked up and never claimed (ruling 77). */
export interface Keys {
  readonly key: string
  readonly formerKey: string | undefined
}

/**
 * `groupId` keeps groups apart that share a store. A cluster's alias is a part of the default key, and of the group before other keys. `topic`, the main topic, keeps bindings
 * of a group apart that have keys of their own: the same key on two topics is other work, and two processes of one group cannot compare their settings. So are two topics of one
 * binding.
 */
export interface Settings<in K, in V> extends Options<K, V> {
  readonly groupId: string
  readonly topic: string
  /** For every topic and retry topic of the binding's further topics: the topic that its records come from. */
  readonly otherTopics?: ReadonlyMap<string, string>
  readonly cluster?: string
}

/** How the keys of a delivery are found. */
export const keysFor = <K, V>({
  groupId,
  topic,
  otherTopics = new Map(),
  cluster = defaultCluster,
  key,
  scope
}: Settings<K, V>): ((of: Delivery<K, V>) => Keys) => {
  // The same topic on another cluster holds other records under the same offsets.
  const former = cluster === defaultCluster ? groupId : `${cluster}/${groupId}`
  if (key === undefined)
    return (delivery) => ({
      key: `${escaped(groupId)}:${delivery.idempotencyKey}`,
      formerKey: `${former}:${delivery.deduplicationKey}`
    })
  // A key may have any characters, so what stands in front of it has none that separate: `a` with key `b:c` is not `a:b` with key `c` (ruling 81).
  const prefixOf = (work: string) => [cluster, groupId, work].map(escaped).join("/")
  const prefix = prefixOf(scope ?? topic)
  // The former key has no topic in it: for a further topic it may be the key of the first one's record.
  const others = new Map(scope === undefined ? Array.from(otherTopics, ([read, of]) => [read, prefixOf(of)]) : [])
  // The former key of a group with such a character may be that of another group, whose work is not this one's. A scope says whose work it is, which a former key does not.
  const isCertain = scope === undefined && [cluster, groupId].every((name) => escaped(name) === name)
  return (delivery) => {
    const text = keyText(UserFunction.plain("the idempotency key", key(delivery), "a text"))
    const other = others.size === 0 ? undefined : others.get(delivery.record.topic)
    if (other !== undefined) return { key: `${other}:${text}`, formerKey: undefined }
    return { key: `${prefix}:${text}`, formerKey: isCertain ? `${former}:${text}` : undefined }
  }
}

/** Records whose keys are none would all have the same one, and all but the first would be skipped. Two lone surrogates are the same bytes in a store. */
const keyText = (key: unknown): string => {
  if (typeof key === "string" && key !== "" && key.isWellFormed()) return key
  throw new TypeError(
    `the idempotency key is ${shown(key)}, and must be a text that is not empty, without lone surrogates`
  )
}

/** Wraps a handler. */
export const idempotent = <K, V, A, E, R>(
  options: Settings<K, V>,
  store: StoreAnswers.Store,
  handler: (delivery: Delivery<K, V>) => Effect.Effect<A, E, R>
): ((delivery: Delivery<K, V>) => Effect.Effect<A, E | AlreadyHandled | IdempotencyStoreError, R>) => {
  const lease = Duration.millis(toMillis(options.lease ?? Defaults.idempotency.leaseMillis))
  const retention = Duration.millis(toMillis(options.retention ?? Defaults.idempotency.retentionMillis))
  const keysOf = keysFor(options)
  return (delivery) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const token = yield* claimed(store, keysOf(delivery), lease, restore)
        const renewing = yield* Effect.forkChild(renew(store, token, lease))
        const exit = yield* Effect.exit(restore(Effect.suspend(() => handler(delivery))))
        // Not waited for: what it may still say is said for a claim that is over.
        renewing.interruptUnsafe()
        yield* Exit.isSuccess(exit) ? complete(store, token, retention) : abandon(store, token)
        return yield* exit
      })
    )
}

/** Claims the key, waiting for as long as it is in progress elsewhere. Only the waiting is interruptible: an answer that nobody takes would leave a claim. */
export const claimed = Effect.fnUntraced(function* (
  store: StoreAnswers.Store,
  { key, formerKey }: Keys,
  lease: Duration.Duration,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
) {
  let pauseMillis = firstPauseMillis
  while (true) {
    const claim: Claim = yield* begin(store, key, formerKey, lease)
    if (claim._tag === "Started") return claim.token
    if (claim._tag === "Done") return yield* Effect.fail(alreadyHandled)
    const leftMillis = claim.untilMillis - (yield* Clock.currentTimeMillis)
    // Never shorter than the first pause: a store whose leases are always about to run out is not asked without end.
    yield* restore(Effect.sleep(Math.max(firstPauseMillis, Math.min(pauseMillis, leftMillis))))
    pauseMillis = Math.min(pauseMillis * 2, longestPauseMillis)
  }
})

/** Claims the key. Where a former version has done the same work under its own key, or is at it, the claim is given up again. */
export const begin = Effect.fnUntraced(function* (
  store: StoreAnswers.Store,
  key: string,
  formerKey: string | undefined,
  lease: Duration.Duration
): Effect.fn.Return<Claim, IdempotencyStoreError> {
  const claim = yield* StoreAnswers.ask(store, "begin", StoreAnswers.isClaim, () => store.begin(key, { lease }))
  if (claim._tag !== "Started" || formerKey === undefined) return claim
  const former = yield* Effect.tapError(lookUp(store, formerKey, lease), () => abandon(store, claim.token))
  if (former._tag === "Free") return claim
  yield* abandon(store, claim.token)
  return former
})

const lookUp = (
  store: StoreAnswers.Store,
  key: string,
  lease: Duration.Duration
): Effect.Effect<KeyState, IdempotencyStoreError> => {
  if (store.lookUp !== undefined)
    return StoreAnswers.ask(store, "look up", StoreAnswers.isKeyState, () => store.lookUp!(key))
  return Effect.flatMap(
    StoreAnswers.ask(store, "begin", StoreAnswers.isClaim, () => store.begin(key, { lease })),
    (claim) => (claim._tag === "Started" ? Effect.as(abandon(store, claim.token), free) : Effect.succeed(claim))
  )
}

const free: KeyState = { _tag: "Free" }

/** Renews while the handler runs. A lost claim does not stop the handler: half of its work would not be better than all of it. */
export const renew = Effect.fnUntraced(function* (store: StoreAnswers.Store, token: Token, lease: Duration.Duration) {
  const interval = Duration.millis(Duration.toMillis(lease) / 3)
  while (true) {
    yield* Effect.sleep(interval)
    const held = yield* Effect.exit(
      StoreAnswers.ask(store, "renew", StoreAnswers.isHeld, () => store.renew(token, { lease }), interval)
    )
    if (Exit.isSuccess(held) && !held.value) {
      return yield* LogLine.warning(`${claimOf(token)} was lost while its handler ran: it may be handled twice`)
    }
  }
})

/** The work is done. Never fails: what cannot be completed may be handled again. */
export const complete = (store: StoreAnswers.Store, token: Token, retention: Duration.Duration): Effect.Effect<void> =>
  StoreAnswers.ask(store, "complete", StoreAnswers.isHeld, () =>
    Effect.retry(store.complete(token, { retention }), {
      schedule: completeAgain,
      while: (error) => error.retryable
    })
  ).pipe(
    Effect.flatMap((held) =>
      held ? Effect.void : LogLine.warning(`${claimOf(token)} ran out before it was completed: it may be handled again`)
    ),
    Effect.catchCause((cause) =>
      LogLine.warning(`${claimOf(token)} could not be completed: it may be handled again`, cause)
    )
  )

/** The work is not done: the key is free. Never fails: the lease of what cannot be given up runs out. */
export const abandon = (store: StoreAnswers.Store, token: Token): Effect.Effect<void> =>
  StoreAnswers.ask(store, "abandon", StoreAnswers.isHeld, () => store.abandon(token)).pipe(
    Effect.catchCause((cause) =>
      LogLine.warning(`${claimOf(token)} could not be given up: it is free when its lease runs out`, cause)
    ),
    Effect.asVoid
  )

const claimOf = (token: Token): string => `The claim of '${token.key}'`
