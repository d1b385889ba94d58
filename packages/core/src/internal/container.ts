/**
 * A registered binding: its state, its consumers, and the commands that move it (connector seed §4.3 and §4.11).
 *
 * Every transition is decided and written in one synchronous step; what takes time (draining, joining) happens afterwards. So the commands of a
 * binding are serialised without a lock, and none is held while a handler runs.
 */
import { Clock, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import type { Broker } from "../Broker.ts"
import { type ContainerState, InvalidContainerState } from "../EventBusError.ts"
import { Hostname } from "../Hostname.ts"
import { bounded } from "./bounded.ts"
import type { Consumer } from "./consumer.ts"
import { CurrentHandler } from "./currentHandler.ts"
import * as DeadLetters from "./deadLetters.ts"
import type { BindingDefinition } from "./definition.ts"
import type { EventHub } from "./eventHub.ts"
import * as Halts from "./halts.ts"
import * as PauseReasons from "./pauseReasons.ts"
import * as Places from "./places.ts"
import * as Supervisor from "./supervisor.ts"

/** The interruptibility of whoever gave the command: a finalizer of an interrupted program waits for the drain, a caller need not. */
type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

type Command = Effect.Effect<void, InvalidContainerState>

export interface Container {
  readonly definition: BindingDefinition<unknown>
  readonly state: () => ContainerState
  /** Why the binding shows PAUSED; empty otherwise. */
  readonly pausedBy: () => ReadonlyArray<PauseReasons.PauseReason>
  readonly consumers: () => ReadonlyArray<Supervisor.ConsumerStatus>
  readonly start: Command
  readonly stop: Command
  readonly pause: Command
  readonly resume: Command
  readonly destroy: Command
}

/** One start of a binding, until its stop has ended. */
interface Run {
  readonly scope: Scope.Closeable
  readonly ended: Deferred.Deferred<void>
}

/** How long closing sessions may take after the drain: the group is left, sockets are closed. */
const closeBoundMillis = 10_000

/** How long a pause waits for its commit: a broker that is down must not hold the command up. */
const flushBoundMillis = 5_000

/** The reasons that a binding shows, its own and those of single partitions (a halt). */
const shownReasons = (
  own: PauseReasons.PauseReasons,
  consumers: ReadonlyArray<Consumer>
): ReadonlyArray<PauseReasons.PauseReason> => {
  const everywhere = consumers.flatMap((consumer) => consumer.partitions().map((partition) => partition.reasons))
  const union = everywhere.reduce((all, some) => all | some, own)
  return PauseReasons.list(union).filter((reason) => reason === "operator" || reason === "breaker")
}

const invalid = (
  refused: Pick<InvalidContainerState, "binding" | "operation" | "current" | "required">,
  heldBy: ReadonlyArray<PauseReasons.PauseReason>
) =>
  new InvalidContainerState(
    heldBy.length === 0 ? refused : { ...refused, detail: `it is held by ${heldBy.join(" and ")}` }
  )

/** Leaves the group and closes the sessions. Not in the binding's scope, which may be closing already. */
const close = Effect.fnUntraced(function* (ending: Run) {
  const closing = yield* Effect.forkDetach(Scope.close(ending.scope, Exit.void), { startImmediately: true })
  yield* bounded(Fiber.await(closing), closeBoundMillis)
})

/** A command that comes from inside a handler of its own binding must not wait for that handler. */
const fromInside = <E>(name: string, inside: Effect.Effect<void>, outside: Effect.Effect<void, E>) =>
  Effect.flatMap(CurrentHandler, (binding): Effect.Effect<void, E> => (binding === name ? inside : outside))

export const make = Effect.fnUntraced(function* <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  hub: EventHub
): Effect.fn.Return<Container, never, R | Scope.Scope> {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<R>()
  const hostname = yield* Hostname
  const deadLetters = yield* DeadLetters.make(definition, broker)
  const places = Number.isFinite(definition.maxInFlight)
    ? Places.make(definition.maxInFlight, yield* Clock.Clock)
    : Places.unbounded
  const statuses = new Map<number, Supervisor.ConsumerStatus>()
  let lifecycle: "CREATED" | "STARTED" | "STOPPED" | "DESTROYED" = "CREATED"
  let reasons = PauseReasons.empty
  const halts = Halts.make()
  let run: Run | undefined
  let shown: ContainerState = "CREATED"

  const live = () =>
    Array.from(statuses.values()).flatMap((status) => (status._tag === "Running" ? [status.consumer] : []))
  const onLive = (each: (consumer: Consumer) => Effect.Effect<void>) =>
    Effect.suspend(() => Effect.forEach(live(), each, { concurrency: "unbounded", discard: true }))

  const pausedBy = () => (lifecycle === "STARTED" ? shownReasons(reasons, live()) : [])

  const state = (): ContainerState => {
    if (lifecycle !== "STARTED") return lifecycle
    return pausedBy().length > 0 ? "PAUSED" : "RUNNING"
  }

  const announce = Effect.sync(() => {
    const to = state()
    if (to === shown) return
    hub.emit({ _tag: "StateChanged", binding: definition.name, from: shown, to, reasons: pausedBy() })
    shown = to
  })

  const refuse = (operation: string, required: ReadonlyArray<ContainerState>): Command =>
    Effect.fail(invalid({ binding: definition.name, operation, current: state(), required }, pausedBy()))

  const hold = Effect.suspend(() => {
    reasons = PauseReasons.add(reasons, "operator")
    return Effect.andThen(
      onLive((consumer) => consumer.hold("operator")),
      announce
    )
  })

  const begin = Effect.gen(function* () {
    const current: Run = { scope: yield* Scope.make(), ended: Deferred.makeUnsafe() }
    run = current
    for (let index = 0; index < definition.concurrency; index++) {
      const consumer = Supervisor.supervise(
        {
          definition,
          index,
          hostname,
          broker,
          hub,
          deadLetters,
          bindingReasons: (partition) => (halts.hold(partition) ? PauseReasons.add(reasons, "operator") : reasons),
          onHalted: (partition) => Effect.andThen(halts.add(partition), announce),
          announce,
          pauseBinding: hold,
          places
        },
        (status) => statuses.set(index, status)
      )
      yield* Effect.forkIn(Effect.provideContext(consumer, context), current.scope)
    }
  })

  /** Drain, final commit, then leave the group and close. From inside a handler of this binding it goes on behind the caller's back. */
  const finish = (ending: Run, restore: Restore) => {
    // A partition that is assigned from now on must not start to handle.
    reasons = PauseReasons.add(reasons, "shutdown")
    const drained = onLive((consumer) => consumer.drain(definition.shutdownTimeoutMillis))
    return Effect.andThen(drained, close(ending)).pipe(
      Effect.andThen(
        Effect.sync(() => {
          statuses.clear()
          run = undefined
          Deferred.doneUnsafe(ending.ended, Effect.void)
        })
      ),
      Effect.uninterruptible,
      // Started at once: closing the binding's scope waits for what has begun, and drops what has not.
      Effect.forkIn(scope, { startImmediately: true }),
      Effect.andThen(ended(ending, restore))
    )
  }

  const ended = (ending: Run, restore: Restore) =>
    fromInside(definition.name, Effect.void, restore(Deferred.await(ending.ended)))

  /** Goes on when the run has ended; from inside a handler of this binding, behind the caller's back. */
  const afterwards = (ending: Run, next: Command): Command => {
    const rest = Effect.andThen(Deferred.await(ending.ended), next)
    return fromInside(definition.name, Effect.asVoid(Effect.forkIn(Effect.ignore(rest), scope)), rest)
  }

  const start: Command = Effect.suspend(() => {
    if (lifecycle !== "CREATED" && lifecycle !== "STOPPED") return refuse("start", ["CREATED", "STOPPED"])
    if (run !== undefined) return afterwards(run, start)
    lifecycle = "STARTED"
    reasons = PauseReasons.empty
    halts.clear()
    return Effect.uninterruptible(Effect.andThen(begin, announce))
  })

  const stop: Command = Effect.suspend(() => {
    if (lifecycle !== "STARTED" || run === undefined) return refuse("stop", ["RUNNING", "PAUSED"])
    lifecycle = "STOPPED"
    const ending = run
    return Effect.uninterruptibleMask((restore) => Effect.andThen(announce, finish(ending, restore)))
  })

  const pause: Command = Effect.suspend(() => {
    if (lifecycle !== "STARTED" || PauseReasons.has(reasons, "operator")) return refuse("pause", ["RUNNING"])
    const flush = bounded(
      onLive((consumer) => consumer.flush),
      flushBoundMillis
    )
    return Effect.asVoid(Effect.andThen(hold, flush))
  })

  const resume: Command = Effect.suspend(() => {
    if (!pausedBy().includes("operator")) return refuse("resume", ["PAUSED"])
    reasons = PauseReasons.remove(reasons, "operator")
    halts.clear()
    return Effect.andThen(
      onLive((consumer) => consumer.letGo("operator")),
      announce
    )
  })

  const destroy: Command = Effect.suspend(() => {
    if (lifecycle === "DESTROYED") return refuse("destroy", ["CREATED", "RUNNING", "PAUSED", "STOPPED"])
    const started = lifecycle === "STARTED"
    lifecycle = "DESTROYED"
    const ending = run
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(
        announce,
        ending === undefined ? Effect.void : started ? finish(ending, restore) : ended(ending, restore)
      )
    )
  })

  return {
    definition,
    state,
    pausedBy,
    consumers: () => Array.from(statuses.values()),
    start,
    stop,
    pause,
    resume,
    destroy
  }
})
