/**
 * Remembers what has been handled, so that a record which is delivered again is not handled again (connector seed §8).
 *
 * A key is claimed before the handler runs and completed after it: in progress is not done. A claim is held for a lease, which its owner
 * renews while it works; when the lease runs out the claim is over, and the next caller gets the key. A former owner changes nothing
 * after that, since every claim has a token of its own. Every store is exact: one that may take a new key for a known one would
 * lose records (ruling 54).
 *
 * Stores: `layerMemory` for one process, `@eventbus/redis`, and `SqlIdempotencyStore` of `@eventbus/outbox`.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Delivery } from "./Delivery.ts"
import * as Failure from "./internal/failure/failure.ts"
import * as Ranges from "./Ranges.ts"
import type { Time } from "./Time.ts"

/** The idempotency settings of a binding. */
export interface Options<in K, in V> {
  /**
   * The key of a delivery's work: a text that is not empty. Default: `idempotencyKey`, the first position of the record with its timestamp, in all tiers the same. The store
   * gets it as `{groupId}:{key}`, so that groups never take each other's work for done; for keys of this function see `scope`.
   *
   * The default knows a topic that was deleted and made again for a new one, by the timestamps of its records (ruling 77). After offsets were moved back on
   * purpose, the records of the last `retention` are skipped. A key out of the record's content has no such limit. A function that throws, or answers with anything but a
   * text that is not empty, fails the record.
   */
  readonly key?: (delivery: Delivery<K, V>) => string
  /**
   * The owner of the keys of `key`: the store gets them as `{cluster}/{groupId}/{scope}:{key}`. Bindings that name the same scope share their keys on purpose, as for one
   * stream of events on two topics, or for a topic that moves. A binding that gets another scope does not know the keys that it stored before. Not empty. Default: the topic of
   * the binding, of several the one that the record came from, so that the same key on two topics is other work; what a former version stored for the whole group as `{groupId}:{key}` counts, too.
   */
  readonly scope?: string
  /** How long a claim outlives an owner that crashed. Default 1 minute; finite, at least 1 second. A running handler renews it, however long it takes. */
  readonly lease?: Time
  /** How long a handled key is remembered. Default 24 hours; finite, longer than anything can be delivered again. */
  readonly retention?: Time
}

/** One claim of one key: what its owner shows to complete, abandon or renew it. */
export interface Token {
  /** The key that is claimed. */
  readonly key: string
  /** Differs from that of every other claim of the key. */
  readonly id: string
}

/**
 * - `Started`: the key is the caller's until the lease runs out.
 * - `Done`: handled within the retention.
 * - `InProgress`: somebody else's, who may still fail; the lease runs out at `untilMillis` by the clock of this process, if nobody renews it.
 */
export type Claim =
  | {
      readonly _tag: "Started"
      /** The token that completes, abandons or renews the claim. */
      readonly token: Token
    }
  | { readonly _tag: "Done" }
  | {
      readonly _tag: "InProgress"
      /** When the lease of the owner runs out, epoch milliseconds. */
      readonly untilMillis: number
    }

/** The state of a key, without a claim: it is free, or `begin` would answer the same. */
export type KeyState = { readonly _tag: "Free" } | Exclude<Claim, { readonly _tag: "Started" }>

/** The store did not answer, or refused. The operation may have happened all the same. */
export class IdempotencyStoreError extends Schema.TaggedError<IdempotencyStoreError>()("IdempotencyStoreError", {
  /** Name of the store. */
  store: Schema.String,
  /** The operation that failed. */
  operation: Schema.Literals(["open", "look up", "begin", "complete", "abandon", "renew"]),
  /** Whether the same call may succeed later. */
  retryable: Schema.Boolean,
  /** The error of the store's client. */
  cause: Schema.Defect()
}) {
  override get message(): string {
    const { className, message } = Failure.fromUnknown(this.cause)
    return `Idempotency store '${this.store}' failed to ${this.operation}: ${message === "" ? className : message}`
  }
}

/** Each call is atomic, also against other processes. `complete`, `abandon` and `renew` answer whether the claim still held. */
export class IdempotencyStore extends Context.Service<
  IdempotencyStore,
  {
    /** Shown in errors, such as `redis`. */
    readonly name: string
    /** Claims a key that is neither done nor in progress, for `lease`. */
    readonly begin: (
      key: string,
      options: { readonly lease: Duration.Duration }
    ) => Effect.Effect<Claim, IdempotencyStoreError>
    /**
     * The state of a key now; claims nothing. The connector looks keys of its first version up with it. Where a store leaves it out, the connector claims such a key
     * and abandons it at once.
     */
    readonly lookUp?: (key: string) => Effect.Effect<KeyState, IdempotencyStoreError>
    /** The work is done: the key is `Done` for `retention`. */
    readonly complete: (
      token: Token,
      options: { readonly retention: Duration.Duration }
    ) => Effect.Effect<boolean, IdempotencyStoreError>
    /** The work failed: the key is free at once. */
    readonly abandon: (token: Token) => Effect.Effect<boolean, IdempotencyStoreError>
    /** The work goes on: the lease begins anew. */
    readonly renew: (
      token: Token,
      options: { readonly lease: Duration.Duration }
    ) => Effect.Effect<boolean, IdempotencyStoreError>
  }
>()("@eventbus/core/IdempotencyStore") {}

/** The settings of `layerMemory`. */
export interface MemoryOptions {
  /**
   * How many keys are kept, done and in progress together. Default 100,000; a whole number from 1. One more makes the store forget the key
   * that was completed longest ago. One that is in progress is never forgotten: of those there are as many as handlers at once.
   */
  readonly capacity?: number
}

/** The keys of one process: exact, bounded, gone with the process. Enough where a record is delivered again to the same process only. */
export const layerMemory = (options: MemoryOptions = {}): Layer.Layer<IdempotencyStore> =>
  Layer.sync(IdempotencyStore, () => {
    Ranges.check("IdempotencyStore.layerMemory", options, { capacity: Ranges.clients.capacity })
    const keys = new MemoryKeys(options.capacity ?? 100_000)
    const now = <A>(f: (nowMillis: number) => A) => Effect.map(Clock.currentTimeMillis, f)
    return IdempotencyStore.of({
      name: "memory",
      lookUp: (key) => now((at) => keys.lookUp(key, at)),
      begin: (key, { lease }) => now((at) => keys.begin(key, at, at + Duration.toMillis(lease))),
      complete: (token, { retention }) => now((at) => keys.complete(token, at, at + Duration.toMillis(retention))),
      abandon: (token) => now((at) => keys.abandon(token, at)),
      renew: (token, { lease }) => now((at) => keys.renew(token, at, at + Duration.toMillis(lease)))
    })
  })

interface DoneKey {
  readonly key: string
  readonly untilMillis: number
}

class MemoryKeys {
  readonly #capacity: number
  readonly #done = new Map<string, DoneKey>()
  /**
   * Done keys, the one completed longest ago at `#oldest`; some are no longer in the map, or not as this object. A queue of its own, since a Map
   * walks over all that was deleted at its front.
   */
  #order: Array<DoneKey> = []
  #oldest = 0
  /** Claims by key; the one begun or renewed longest ago comes first. */
  readonly #claims = new Map<string, { readonly id: string; readonly untilMillis: number }>()
  #lastId = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  lookUp(key: string, nowMillis: number): KeyState {
    const done = this.#done.get(key)
    if (done !== undefined && done.untilMillis > nowMillis) return { _tag: "Done" }
    const claim = this.#claims.get(key)
    return claim !== undefined && claim.untilMillis > nowMillis
      ? { _tag: "InProgress", untilMillis: claim.untilMillis }
      : { _tag: "Free" }
  }

  begin(key: string, nowMillis: number, untilMillis: number): Claim {
    this.#dropExpiredClaims(nowMillis)
    const state = this.lookUp(key, nowMillis)
    if (state._tag !== "Free") return state
    this.#done.delete(key)
    const id = String(++this.#lastId)
    this.#claim({ key, id }, untilMillis)
    this.#dropDone(nowMillis)
    return { _tag: "Started", token: { key, id } }
  }

  complete(token: Token, nowMillis: number, untilMillis: number): boolean {
    if (!this.abandon(token, nowMillis)) return false
    const done = { key: token.key, untilMillis }
    this.#done.set(token.key, done)
    this.#order.push(done)
    this.#dropDone(nowMillis)
    return true
  }

  abandon(token: Token, nowMillis: number): boolean {
    return this.#holds(token, nowMillis) && this.#claims.delete(token.key)
  }

  renew(token: Token, nowMillis: number, untilMillis: number): boolean {
    if (!this.#holds(token, nowMillis)) return false
    this.#claim(token, untilMillis)
    return true
  }

  #holds({ key, id }: Token, nowMillis: number): boolean {
    const claim = this.#claims.get(key)
    return claim !== undefined && claim.id === id && claim.untilMillis > nowMillis
  }

  #claim({ key, id }: Token, untilMillis: number): void {
    this.#claims.delete(key)
    this.#claims.set(key, { id, untilMillis })
  }

  /** From the front only: where leases differ, what is behind a longer one is dropped later. */
  #dropExpiredClaims(nowMillis: number): void {
    for (const [key, { untilMillis }] of this.#claims) {
      if (untilMillis > nowMillis) break
      this.#claims.delete(key)
    }
  }

  /** Drops from the oldest on what has expired, and what is too many. */
  #dropDone(nowMillis: number): void {
    for (; this.#oldest < this.#order.length; this.#oldest++) {
      const oldest = this.#order[this.#oldest]!
      if (this.#done.get(oldest.key) !== oldest) continue
      const fits = this.#done.size + this.#claims.size <= this.#capacity
      if (fits && oldest.untilMillis > nowMillis) break
      this.#done.delete(oldest.key)
    }
    if (this.#order.length > 2 * this.#done.size + 1_024) {
      this.#order = this.#order.slice(this.#oldest).filter((done) => this.#done.get(done.key) === done)
      this.#oldest = 0
    }
  }
}
