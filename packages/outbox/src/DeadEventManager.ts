/** The operator's view of dead events. A database that does not answer is logged, and the answer is the empty one. */
import { Context, Effect, Layer } from "effect"
import type { OutboxStoreError } from "./OutboxError.ts"
import { type DeadFilter, type OutboxEvent, OutboxStore, type PolledEvent, separateUndecodable } from "./OutboxStore.ts"

export class DeadEventManager extends Context.Service<
  DeadEventManager,
  {
    /** DEAD events, oldest first; an absent filter means all. */
    readonly query: (filter?: DeadFilter, limit?: number) => Effect.Effect<ReadonlyArray<OutboxEvent>>
    /** NEW again with attempts 0; false for anything that is not DEAD. */
    readonly replay: (eventId: string) => Effect.Effect<boolean>
    /** Replays each matching event that is DEAD at its turn, once; returns how many were. */
    readonly replayAll: (filter?: DeadFilter, batchSize?: number) => Effect.Effect<number>
    readonly count: (filter?: Pick<DeadFilter, "eventType">) => Effect.Effect<number>
  }
>()("@eventbus/outbox/DeadEventManager") {}

export type Shape = DeadEventManager["Service"]

export interface DeadEventOptions {
  /** Called when events were replayed, for example to wake the poller. */
  readonly onReplayed?: () => void
}

export const make = (options: DeadEventOptions = {}): Effect.Effect<Shape, never, OutboxStore> =>
  Effect.map(OutboxStore, (store) => {
    const orElse =
      <A>(fallback: A) =>
      (effect: Effect.Effect<A, OutboxStoreError>): Effect.Effect<A> =>
        Effect.catch(effect, (error) =>
          Effect.as(Effect.logFatal("outbox: dead event operation failed", error), fallback)
        )
    const replay = (eventId: string) => Effect.map(store.replayDead(eventId), (changed) => changed > 0)
    const replayed = Effect.sync(() => options.onReplayed?.())

    const replayAll = Effect.fnUntraced(function* (filter: DeadFilter, batchSize: number) {
      let total = 0
      let afterSeq = 0
      for (;;) {
        // In order of insertion and only forward: one that dies again meanwhile is not met twice, so this ends.
        const dead: ReadonlyArray<PolledEvent> = yield* orElse<ReadonlyArray<PolledEvent>>([])(
          store.queryDead(filter, batchSize, afterSeq)
        )
        for (const event of dead) {
          const ok = yield* Effect.result(replay(event.eventId))
          if (ok._tag === "Failure") {
            yield* Effect.logFatal("outbox: replaying dead events stopped", ok.failure)
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
        orElse<ReadonlyArray<OutboxEvent>>([])(
          Effect.map(store.queryDead(filter, limit), (found) => separateUndecodable(found).events)
        ),
      replay: (eventId) => Effect.tap(orElse(false)(replay(eventId)), replayed),
      replayAll: (filter = {}, batchSize = 100) => Effect.tap(replayAll(filter, Math.max(1, batchSize)), replayed),
      count: (filter = {}) => orElse(0)(store.countDead(filter))
    })
  })

export const layer = (options?: DeadEventOptions): Layer.Layer<DeadEventManager, never, OutboxStore> =>
  Layer.effect(DeadEventManager, make(options))
