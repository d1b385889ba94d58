/** The operator's view of dead events (outbox seed §18). When the database fails, the failure is logged, and the answer is empty. */
import { Kinds } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { failureOfValue } from "./internal/base/failureText.ts"
import { logFatal } from "./internal/base/log.ts"
import { checkOptions, problemsOf, refuse, within } from "./internal/base/options.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import type { InvalidOutboxConfig, OutboxStoreError } from "./OutboxError.ts"
import { deadEvents as range } from "./OutboxRanges.ts"
import { type DeadFilter, type OutboxEvent, OutboxStore, type PolledEvent, toOutboxEvents } from "./OutboxStore.ts"

/** Lists, counts and replays dead events of one outbox. */
export class DeadEventManager extends Context.Service<
  DeadEventManager,
  {
    /**
     * DEAD events, oldest first. An absent filter means all; `limit` is 100 unless given, 0 or more; another value ends the call with the
     * defect `InvalidOutboxConfig`. Empty when the database fails. An event that could not be decoded is among them, with what is known of it
     * and the reason in `unreadable`.
     */
    readonly query: (filter?: DeadFilter, limit?: number) => Effect.Effect<ReadonlyArray<OutboxEvent>>
    /** Makes a DEAD event NEW again, with attempts 0 (ruling 42). False for any other event, and when the database fails. */
    readonly replay: (eventId: string) => Effect.Effect<boolean>
    /**
     * Replays every matching event once, `batchSize` (default 100, 1 to 100,000; another value is the defect `InvalidOutboxConfig`) at a time; returns how many were replayed. It ends although
     * replayed events may die again meanwhile. When the database fails, it stops and returns the number so far.
     */
    readonly replayAll: (filter?: DeadFilter, batchSize?: number) => Effect.Effect<number>
    /** The number of DEAD events. An absent filter means all. 0 when the database fails. */
    readonly count: (filter?: Pick<DeadFilter, "eventType">) => Effect.Effect<number>
  }
>()("@eventbus/outbox/DeadEventManager") {}

/** Settings of `make` and `layer`. */
export interface DeadEventOptions {
  /** Called after events were replayed, for example to wake the poller. */
  readonly onReplayed?: () => void
}

const logFailure = (error: OutboxStoreError) =>
  logFatal(`outbox: dead event operation failed: ${failureOfValue(error).summary}`)

/** A number outside of its range is a mistake of the program, and not an answer: the call dies with `InvalidOutboxConfig`. */
const checked = <A>(issues: InvalidOutboxConfig["issues"], effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.andThen(Effect.orDie(checkOptions("DeadEventManager", [issues])), effect)

/** The manager of the store's dead events. Dies with `InvalidOutboxConfig` for wrong settings. */
export const make = (options: DeadEventOptions = {}): Effect.Effect<DeadEventManager["Service"], never, OutboxStore> =>
  Effect.gen(function* () {
    refuse("DeadEventManager", problemsOf(options, { onReplayed: Kinds.func }))
    const store = yield* OutboxStore
    const tools = yield* makeDeliveryTools(store)
    const orElse =
      <A>(fallback: A) =>
      (effect: Effect.Effect<A, OutboxStoreError>): Effect.Effect<A> =>
        Effect.catch(effect, (error) => Effect.as(logFailure(error), fallback))
    const replay = (eventId: string) => Effect.map(store.replayDead(eventId), (changed) => changed > 0)
    const replayed = Effect.sync(() => tools.guard.run("onReplayed", options.onReplayed))

    const replayAll = Effect.fnUntraced(function* (filter: DeadFilter, batchSize: number) {
      let total = 0
      let afterSeq = 0
      for (;;) {
        // In insertion order and only forward: an event that dies again meanwhile is not met twice, so the loop ends.
        const dead: ReadonlyArray<PolledEvent> = yield* orElse<ReadonlyArray<PolledEvent>>([])(
          store.queryDead(filter, batchSize, afterSeq)
        )
        for (const event of dead) {
          const ok = yield* Effect.result(replay(event.eventId))
          if (ok._tag === "Failure") {
            yield* logFatal(`outbox: replaying dead events stopped: ${failureOfValue(ok.failure).summary}`)
            return total
          }
          if (ok.success) total++
          afterSeq = event.seq
        }
        if (dead.length < batchSize) return total
      }
    })

    return DeadEventManager.of({
      query: (filter = {}, limit = 100) =>
        checked(
          within("limit", limit, range.limit),
          orElse<ReadonlyArray<OutboxEvent>>([])(Effect.map(store.queryDead(filter, limit), toOutboxEvents))
        ),
      replay: (eventId) => Effect.tap(orElse(false)(replay(eventId)), replayed),
      replayAll: (filter = {}, batchSize = 100) =>
        checked(within("batchSize", batchSize, range.batchSize), Effect.tap(replayAll(filter, batchSize), replayed)),
      count: (filter = {}) => orElse(0)(store.countDead(filter))
    })
  })

/** The manager of the store's dead events, as a layer. */
export const layer = (options?: DeadEventOptions): Layer.Layer<DeadEventManager, never, OutboxStore> =>
  Layer.effect(DeadEventManager, make(options))
