/**
 * The scheduler of the keys that drain (`orderingMode: "PER_KEY"`): it handles what followed a parked record, in order, beside the loops of the partitions.
 *
 * A follower is a record of the main topic, wherever it is read from: it takes the main topic's slots and permits, waits for its gate, and fails as it would there. At most as
 * many keys drain at once as handlers can run; the others wait for their turn.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { Entry } from "../../order/entry.ts"
import type { Unit } from "../../order/unit.ts"
import * as BesideFibers from "../besideFibers.ts"
import type { ConsumerContext } from "../consumerContext.ts"
import { annotated } from "../logAnnotations.ts"
import * as BlockedKey from "./blockedKey.ts"
import { FollowerRun, type PerRecord, type Shared } from "./followerRun.ts"

/** Keys that drain at once where nothing limits the handlers. */
const mostDraining = 64

/** Between two looks at the keys that wait. */
const lookMillis = 1_000

/** Between two looks at the configuration of the source, while keys are parked. */
const retentionMillis = 60_000

export interface Followers {
  /** Returns when no key drains any more: once the partition stops. */
  readonly idle: Effect.Effect<void>
}

/** Begins to serve a unit. It ends with the scope. */
export const make = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  unit: Unit
): Effect.fn.Return<Followers, never, R | Scope.Scope> {
  const fibers = yield* BesideFibers.make(context)
  const fork = yield* FiberSet.runtime(fibers)<R>()
  const { maxInFlight } = context.definition
  const most = Math.min(2 * maxInFlight, mostDraining)
  const waiting: Array<Entry> = []
  const shared: Shared<R> = { context, handler, unit }
  let running = 0

  const startNext = (): void => {
    while (running < most && !unit.stopping) {
      const entry = waiting.shift()
      if (entry === undefined) return
      running++
      fork(
        Effect.ensuring(
          drainKey(shared, entry),
          Effect.sync(() => {
            running--
            startNext()
          })
        )
      )
    }
  }
  unit.onDrain = (entry) => {
    waiting.push(entry)
    startNext()
  }
  unit.onBeside = (effect) => fork(Effect.asVoid(effect))
  yield* Effect.forkScoped(Effect.catchDefect(lookAfter(shared), context.onDefect))
  yield* Effect.forkScoped(askRetention(unit))
  unit.start()
  return { idle: FiberSet.awaitEmpty(fibers) }
})

/** The configuration of the source may change while keys are parked. */
const askRetention = ({ table, options }: Unit): Effect.Effect<never> =>
  Effect.forever(
    Effect.flatMap(Effect.sleep(retentionMillis), () =>
      table.size === 0 ? Effect.void : options.askRetention(retentionMillis)
    )
  )

/** Keys that hold up others, and keys that have waited for too long. */
const lookAfter = <R>({ context, unit }: Shared<R>): Effect.Effect<never> =>
  Effect.forever(
    Effect.flatMap(Effect.sleep(lookMillis), () =>
      Effect.sync(() => {
        if (unit.table.size === 0 || unit.stopping) return
        for (const moved of unit.unblock()) unit.onBeside(moved)
        BlockedKey.expire(context, unit)
      })
    )
  )

/** Handles what follows a key until nothing follows, its lock has moved on, or the partition stops. */
const drainKey = <R>(shared: Shared<R>, entry: Entry): Effect.Effect<void, never, R> => {
  const { context, unit } = shared
  const { main } = unit.options
  const run = new FollowerRun(shared, entry)
  const loop = Effect.gen(function* () {
    if (entry.awaitsHead) yield* main.until(unit.heldKeys.readHead(entry))
    while (!main.stopping) {
      if (entry.followers.first === undefined) {
        if (entry.evictedFrom === undefined) return unit.drained(entry)
        yield* main.until(untilRead(unit, entry))
        continue
      }
      for (const prepared of run.preparations()) yield* main.until(prepared)
      yield* main.runnable
      if (main.stopping) return
      const isDone = yield* run.goOn
      if (!isDone || run.hasMoved) return
      if (unit.locks.mustRoll(entry)) yield* unit.locks.roll(entry)
    }
  })
  return annotated(Effect.ensuring(loop, run.delivery.ensureClosed), context, main, () => entry.followers.first)
}

/** Waits until followers are read from the source again. */
const untilRead = (unit: Unit, entry: Entry): Effect.Effect<void> =>
  Effect.suspend(() => {
    const isRead = Latch.makeUnsafe(false)
    entry.onRead = () => isRead.openUnsafe()
    unit.onWork()
    return isRead.await
  })
