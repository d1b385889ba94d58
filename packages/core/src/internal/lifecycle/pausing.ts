/**
 * Why a binding is paused, and its commands that pause and resume it. An operator pauses the whole binding or one tier, a record halts its partition, the
 * circuit breaker pauses the binding, and a fleet holds it. Each resumes only its own pause (rulings 9 and 62).
 */

import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import { type ContainerState, InvalidContainerState, RecordNotHeld } from "../../EventBusError.ts"
import type { Decision, PauseReason } from "../../Snapshot.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import type { Strategy } from "../deadLetters/strategy.ts"
import type { TierCommand } from "../fleet/fleetMember.ts"
import type { Consumer } from "../group/consumer.ts"
import type { HeldRecords } from "../partition/heldRecords.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import * as Arguments from "../replay/arguments.ts"
import type { TierTopic } from "../retry/tiers.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as BreakerPause from "./breakerPause.ts"
import * as FleetPause from "./fleetPause.ts"
import * as Halts from "./halts.ts"
import * as PausedTiers from "./pausedTiers.ts"

type Command = Effect.Effect<void, InvalidContainerState>

export interface PausingOptions extends BreakerPause.BreakerPauseOptions {
  readonly breaker: CircuitBreaker.CircuitBreaker | undefined
  readonly held: HeldRecords
  /** The batches that the consumer of a custom dead letter handler cannot read; undefined while there is none. */
  readonly unreadableLetters: () => Strategy["unreadable"] | undefined
  /** The consumers that have a session now. */
  readonly consumers: () => ReadonlyArray<Consumer>
  readonly isStarted: () => boolean
  /** The state that the binding shows. */
  readonly state: () => ContainerState
}

export interface Pausing {
  readonly pause: Command
  readonly resume: Command
  readonly pauseTier: TierCommand
  readonly resumeTier: TierCommand
  readonly pausedTiers: () => ReadonlyArray<number>
  /** Applies the holds of the fleet, which no command of this process lifts. */
  readonly hold: FleetPause.FleetPause["hold"]
  readonly fleetHolds: FleetPause.FleetPause["list"]
  /** Whether the process has not read the holds of its fleet yet. */
  readonly readsHolds: FleetPause.FleetPause["isReading"]
  /** Why the whole binding is paused: `operator`, `breaker`, `fleet`, or several of them. */
  readonly pausedBy: () => ReadonlyArray<PauseReason>
  /** The reasons that pause a partition that was just assigned. */
  readonly reasonsFor: (partition: Partition) => PauseReasons.PauseReasons
  /** Halts a partition because of its record. The halt survives rebalances. */
  readonly halt: (partition: Partition) => Effect.Effect<void>
  /** Settles a held record as an operator decides, and lets its partition go on. Waits some seconds for a trial call of the record to end. */
  readonly decide: (at: RecordPosition, decision: Decision) => Effect.Effect<void, RecordNotHeld>
  /** A record pauses the whole binding, with reason `operator`. */
  readonly pauseByOperator: Effect.Effect<void>
  /** Fails a command. The error says why the binding is paused. */
  readonly refuse: (operation: string, required: ReadonlyArray<ContainerState>, detail?: string) => Command
  /** The binding starts: only an open breaker still pauses it. */
  readonly begin: () => void
  /** The binding stops: a partition that is assigned from now on must not start to handle. */
  readonly end: () => void
}

/** Longest time that a pause waits for its commit: a broker that is down must not hold up the command. */
const flushMillis = 5_000

/** A decision looks so often whether the trial call of its record has ended, for as long as a pause waits for its commit. */
const trialPollMillis = 100

export const make = (options: PausingOptions): Pausing => {
  const { definition, breaker, onConsumers, announce } = options
  const halts = Halts.make()
  const pausedTiers = PausedTiers.make(definition.tiers)
  const fleet = FleetPause.make(options)
  const binding: BreakerPause.BindingReasons = { reasons: PauseReasons.empty, isPausedByRecord: false }

  const pausedBy = (): ReadonlyArray<PauseReason> => {
    if (!options.isStarted()) return []
    const partitions = options
      .consumers()
      .flatMap((consumer) => consumer.partitions().filter((at) => !pausedTiers.includes(at)))
    const union = partitions.reduce((all, partition) => all | partition.reasons, binding.reasons)
    const own = PauseReasons.list(union).filter((reason) => reason === "operator" || reason === "breaker")
    return fleet.holdsBinding() ? [...own, "fleet"] : own
  }

  const refuse = refusals(options, pausedBy)

  const pauseAll = Effect.suspend(() => {
    binding.reasons = PauseReasons.add(binding.reasons, "operator")
    return Effect.andThen(
      onConsumers((consumer) => consumer.pause("operator")),
      announce
    )
  })

  const pauseByOperator = Effect.suspend(() => {
    if (!PauseReasons.has(binding.reasons, "operator")) binding.isPausedByRecord = true
    return pauseAll
  })

  const resumeAll = Effect.suspend(() => {
    binding.reasons = PauseReasons.remove(binding.reasons, "operator")
    halts.clear()
    return Effect.andThen(
      onConsumers((consumer) => consumer.resume("operator", (partition) => !pausedTiers.includes(partition))),
      announce
    )
  })

  if (breaker !== undefined) BreakerPause.follow(options, breaker, binding)

  return {
    ...tierCommands(options, pausedTiers, binding, { refuse, fleet }),
    ...{ pausedBy, pausedTiers: pausedTiers.list, pauseByOperator, refuse },
    ...{ hold: fleet.hold, fleetHolds: fleet.list, readsHolds: fleet.isReading },
    decide: decisions(options, { halts, pausedTiers, binding, resumeAll }),
    halt: (partition) => Effect.andThen(halts.add(partition), announce),
    reasonsFor: (partition) => {
      const isHalted = halts.isStillHalted(partition)
      if (!isHalted) halts.remove(partition)
      const reasons = fleet.includes(partition) ? PauseReasons.add(binding.reasons, "fleet") : binding.reasons
      return isHalted || pausedTiers.includes(partition) ? PauseReasons.add(reasons, "operator") : reasons
    },
    begin: () => {
      binding.reasons = BreakerPause.reasonsOf(definition, breaker)
      halts.clear()
    },
    end: () => {
      binding.reasons = PauseReasons.add(binding.reasons, "shutdown")
    },
    pause: Effect.suspend(() => {
      if (!options.isStarted() || PauseReasons.has(binding.reasons, "operator")) return refuse("pause", ["RUNNING"])
      const flush = awaitAtMost(
        onConsumers((consumer) => consumer.flush),
        flushMillis
      )
      binding.isPausedByRecord = false
      return Effect.asVoid(Effect.andThen(pauseAll, flush))
    }),
    resume: Effect.suspend(() =>
      pausedBy().includes("operator") ? resumeAll : refuse("resume", ["PAUSED"], fleet.remedy())
    )
  }
}

const refusals =
  ({ definition, state }: PausingOptions, pausedBy: Pausing["pausedBy"]): Pausing["refuse"] =>
  (operation, required, detail) =>
    Effect.suspend(() => {
      const by = pausedBy()
      const why = detail ?? (by.length === 0 ? undefined : `it is paused by ${by.join(" and ")}`)
      const refused = { binding: BindingKey.label(definition), operation, current: state(), required }
      return Effect.fail(new InvalidContainerState(why === undefined ? refused : { ...refused, detail: why }))
    })

/** The parts of a binding's pauses that a decision about a held record changes. */
interface Pauses {
  readonly halts: Halts.Halts
  readonly pausedTiers: PausedTiers.PausedTiers
  readonly binding: BreakerPause.BindingReasons
  readonly resumeAll: Effect.Effect<void>
}

const decisions = (options: PausingOptions, { halts, pausedTiers, binding, resumeAll }: Pauses): Pausing["decide"] => {
  const { definition, announce } = options
  /** The partition of a record that was decided about goes on, unless an operator has paused it or another record still pauses the binding. */
  const release = (partition: Partition) =>
    Effect.suspend(() => {
      halts.remove(partition)
      if (PauseReasons.has(binding.reasons, "operator")) {
        return binding.isPausedByRecord && options.held.list().length === 0 ? resumeAll : Effect.void
      }
      if (pausedTiers.includes(partition)) return Effect.void
      partition.removeReason("operator")
      return Effect.andThen(partition.syncFetch, announce)
    })

  const unreadable = () =>
    options.consumers().flatMap((consumer) => consumer.partitions().flatMap((at) => at.unreadable ?? []))

  const notHeld = ({ topic, partition, offset }: RecordPosition) =>
    new RecordNotHeld({
      ...{ binding: BindingKey.label(definition), topic, partition, offset: String(offset) },
      held: [...options.held.decidable(), ...unreadable(), ...(options.unreadableLetters()?.list() ?? [])].map(
        (at) => `${at.topic}-${at.partition}@${at.offset}`
      )
    })

  /** A batch that cannot be read is no record: it can be skipped, and nothing of it can be dead-lettered. */
  const skipBatch = (at: RecordPosition, { kind, reason }: Decision): Effect.Effect<void, RecordNotHeld> =>
    Effect.gen(function* () {
      for (const consumer of kind === "skip" ? options.consumers() : []) {
        if ((yield* consumer.skipUnreadable(at, reason)) !== undefined) return
      }
      const letters = kind === "skip" ? options.unreadableLetters() : undefined
      if (letters !== undefined && (yield* letters.skip(at, reason))) return
      return yield* notHeld(at)
    })

  const decide = (at: RecordPosition, decision: Decision): Effect.Effect<void, RecordNotHeld> =>
    Effect.suspend(() => {
      const held = options.held.decide(at, decision)
      if (held === undefined) return skipBatch(at, decision)
      const { topic, partition, offset } = at
      const where = { topic, partition, offset }
      options.hub.emit({ _tag: "RecordDecided", ...BindingKey.onEvent(definition), at: where, decision })
      // The breaker alone keeps the partition of a record that it tries.
      return held.isTrial ? Effect.void : release(held.partition)
    })

  // A record that makes its trial call at this moment is held again when the call has failed.
  return (at, decision) =>
    Effect.retry(decide(at, decision), {
      schedule: Schedule.spaced(trialPollMillis),
      while: () => options.held.isBeingTried(at),
      times: flushMillis / trialPollMillis
    })
}

/** The commands on one tier. They fail for a tier that does not exist, and when they would change nothing. */
const tierCommands = (
  { definition, onConsumers, isStarted }: PausingOptions,
  pausedTiers: PausedTiers.PausedTiers,
  binding: BreakerPause.BindingReasons,
  { refuse, fleet }: Pick<Pausing, "refuse"> & { readonly fleet: FleetPause.FleetPause }
): Pick<Pausing, "pauseTier" | "resumeTier"> => {
  const onTier =
    (operation: "pause" | "resume", change: (tier: TierTopic) => Effect.Effect<void> | undefined): TierCommand =>
    (tier) =>
      Effect.andThen(
        Arguments.tier(operation, tier, definition.tiers.count),
        Effect.suspend(() => {
          const changed = isStarted() ? change(definition.tiers.topicOf(tier)) : undefined
          if (changed !== undefined) return changed
          const paused = pausedTiers.list().join(", ") || "none"
          const detail = fleet.remedy(tier) ?? `tiers paused by themselves: ${paused}`
          return refuse(`${operation} tier ${tier} of`, ["RUNNING", "PAUSED"], detail)
        })
      )
  const inTier = (tier: TierTopic) => (partition: Partition) => partition.tier?.first === tier.first

  return {
    pauseTier: onTier("pause", (tier) =>
      pausedTiers.pause(tier) ? onConsumers((consumer) => consumer.pause("operator", inTier(tier))) : undefined
    ),
    resumeTier: onTier("resume", (tier) => {
      if (!pausedTiers.resume(tier)) return undefined
      if (PauseReasons.has(binding.reasons, "operator")) return Effect.void
      return onConsumers((consumer) => consumer.resume("operator", inTier(tier)))
    })
  }
}
