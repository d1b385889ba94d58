/**
 * Why a binding is held, and its commands that hold it and let it go: by an operator, as a whole or tier by tier, by a record that halted its partition, by the
 * circuit breaker. Each lifts only what is its own (rulings 9 and 62).
 */
import { Effect } from "effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import { type ContainerState, InvalidContainerState } from "../../EventBusError.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import type { Consumer } from "../group/consumer.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Halts from "./halts.ts"
import * as PausedTiers from "./pausedTiers.ts"

type Command = Effect.Effect<void, InvalidContainerState>

export interface PausingOptions {
  readonly definition: BindingDefinition<unknown>
  readonly breaker: CircuitBreaker.CircuitBreaker | undefined
  readonly hub: EventHub
  /** The consumers that run now. */
  readonly live: () => ReadonlyArray<Consumer>
  readonly isStarted: () => boolean
  /** What the binding shows. */
  readonly state: () => ContainerState
  /** Shows the state, in case that it changed. */
  readonly announce: Effect.Effect<void>
  /** Runs in the background of the binding. */
  readonly fork: (effect: Effect.Effect<void>) => void
}

export interface Pausing {
  readonly pause: Command
  readonly resume: Command
  readonly pauseTier: (tier: number) => Command
  readonly resumeTier: (tier: number) => Command
  readonly pausedTiers: () => ReadonlyArray<number>
  /** Who holds the binding: `operator`, `breaker` or both. */
  readonly pausedBy: () => ReadonlyArray<PauseReasons.PauseReason>
  /** What holds a partition that was just assigned. */
  readonly reasonsFor: (partition: Partition) => PauseReasons.PauseReasons
  /** A record halted its partition, which keeps it over rebalances. */
  readonly halt: (partition: Partition) => Effect.Effect<void>
  /** Adds reason `operator` to the whole binding. */
  readonly pauseByOperator: Effect.Effect<void>
  /** The refusal of a command, which says who holds the binding. */
  readonly refuse: (operation: string, required: ReadonlyArray<ContainerState>, detail?: string) => Command
  /** A fresh start: only an open breaker still holds. */
  readonly begin: () => void
  /** A partition that is assigned from now on must not start to handle. */
  readonly end: () => void
}

/** How long a pause waits for its commit: a broker that is down must not hold the command up. */
const flushBoundMillis = 5_000

export const make = (options: PausingOptions): Pausing => {
  const { definition, breaker, hub, live, announce } = options
  const halts = Halts.make()
  const pausedTiers = PausedTiers.make(definition.tiers)
  let reasons = PauseReasons.empty

  const onLive = (each: (consumer: Consumer) => Effect.Effect<void>) =>
    Effect.suspend(() => Effect.forEach(live(), each, { concurrency: "unbounded", discard: true }))

  const pausedBy = () => {
    if (!options.isStarted()) return []
    const partitions = live().flatMap((consumer) => consumer.partitions().filter((at) => !pausedTiers.includes(at)))
    const union = partitions.reduce((all, partition) => all | partition.reasons, reasons)
    return PauseReasons.list(union).filter((reason) => reason === "operator" || reason === "breaker")
  }

  const refuse: Pausing["refuse"] = (operation, required, detail) =>
    Effect.suspend(() => {
      const heldBy = pausedBy()
      const held = heldBy.length === 0 ? undefined : `it is held by ${heldBy.join(" and ")}`
      const refused = { binding: BindingKey.label(definition), operation, current: options.state(), required }
      const why = detail ?? held
      return Effect.fail(new InvalidContainerState(why === undefined ? refused : { ...refused, detail: why }))
    })

  const hold = Effect.suspend(() => {
    reasons = PauseReasons.add(reasons, "operator")
    return Effect.andThen(
      onLive((consumer) => consumer.pause("operator")),
      announce
    )
  })

  /** Holds or lets go of one tier; refused where there is none, or where it would change nothing. */
  const onTier =
    (operation: string, change: (tier: TierTopic) => Effect.Effect<void> | undefined) =>
    (tier: number): Command =>
      Effect.suspend(() => {
        const { count, topicOf } = definition.tiers
        const exists = Number.isInteger(tier) && tier >= 1 && tier <= count
        const changed = exists && options.isStarted() ? change(topicOf(tier)) : undefined
        if (changed !== undefined) return changed
        const held = pausedTiers.list()
        const detail = exists ? `tiers paused by themselves: ${held.join(", ") || "none"}` : `it has ${count} tiers`
        return refuse(`${operation} tier ${tier} of`, ["RUNNING", "PAUSED"], detail)
      })
  const inTier = (tier: TierTopic) => (partition: Partition) => partition.tier === tier

  /** It holds at once; it lets go when everybody is told, unless it has opened again by then. */
  const followBreaker = Effect.suspend(() => {
    const isHeld = PauseReasons.has(reasons, "breaker")
    const change = onLive((consumer) => (isHeld ? consumer.pause("breaker") : consumer.resume("breaker")))
    return Effect.andThen(change, announce)
  })

  breaker?.onChange(({ from, to, snapshot }) => {
    hub.emit({ _tag: "BreakerChanged", ...BindingKey.onEvent(definition), from, to, snapshot })
    const isHeld = PauseReasons.has(reasons, "breaker")
    if (isHeld === (breakerReasons(definition, breaker) !== PauseReasons.empty)) return
    reasons = (isHeld ? PauseReasons.remove : PauseReasons.add)(reasons, "breaker")
    options.fork(isHeld ? Effect.andThen(Effect.yieldNow, followBreaker) : followBreaker)
  })

  return {
    pausedBy,
    pausedTiers: pausedTiers.list,
    pauseByOperator: hold,
    refuse,
    halt: (partition) => Effect.andThen(halts.add(partition), announce),
    reasonsFor: (partition) => {
      const isHalted = halts.isStillHalted(partition)
      if (!isHalted) halts.remove(partition)
      return isHalted || pausedTiers.includes(partition) ? PauseReasons.add(reasons, "operator") : reasons
    },
    begin: () => {
      reasons = breakerReasons(definition, breaker)
      halts.clear()
    },
    end: () => {
      reasons = PauseReasons.add(reasons, "shutdown")
    },
    pause: Effect.suspend(() => {
      if (!options.isStarted() || PauseReasons.has(reasons, "operator")) return refuse("pause", ["RUNNING"])
      const flush = awaitAtMost(
        onLive((consumer) => consumer.flush),
        flushBoundMillis
      )
      return Effect.asVoid(Effect.andThen(hold, flush))
    }),
    resume: Effect.suspend(() => {
      if (!pausedBy().includes("operator")) return refuse("resume", ["PAUSED"])
      reasons = PauseReasons.remove(reasons, "operator")
      halts.clear()
      return Effect.andThen(
        onLive((consumer) => consumer.resume("operator", (partition) => !pausedTiers.includes(partition))),
        announce
      )
    }),
    pauseTier: onTier("pause", (tier) =>
      pausedTiers.pause(tier) ? onLive((consumer) => consumer.pause("operator", inTier(tier))) : undefined
    ),
    resumeTier: onTier("resume", (tier) =>
      !pausedTiers.resume(tier)
        ? undefined
        : PauseReasons.has(reasons, "operator")
          ? Effect.void
          : onLive((consumer) => consumer.resume("operator", inTier(tier)))
    )
  }
}

/** An open breaker holds the binding, unless it is told to let records wait where they are (`automaticPauseOnOpen: false`). */
const breakerReasons = (
  definition: BindingDefinition<unknown>,
  breaker: CircuitBreaker.CircuitBreaker | undefined
): PauseReasons.PauseReasons => {
  const state = breaker?.stateUnsafe()
  const isOpen = state === "OPEN" || state === "FORCED_OPEN"
  return isOpen && definition.circuitBreaker?.automaticPauseOnOpen !== false
    ? PauseReasons.add(PauseReasons.empty, "breaker")
    : PauseReasons.empty
}
