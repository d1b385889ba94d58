/**
 * Counts the records that wait in the dead letter topic of a binding: the cluster's last answer plus the dead letters that this process has stored since. The
 * cluster is asked only while an exporter reads the metric.
 */
import { Clock, Effect } from "effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as TopicName from "../../TopicName.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

export interface DeadLetterDepth {
  readonly read: () => number
  /** This process stored a dead letter. */
  readonly stored: () => void
  /** The cluster answered. */
  readonly counted: (records: number) => void
  readonly isRead: (nowMillis: number) => boolean
}

/** An exporter that reads once a minute counts as reading. */
const readMillis = 120_000

export const make = (clock: Clock.Clock): DeadLetterDepth => {
  let depth = 0
  let lastReadMillis = Number.NEGATIVE_INFINITY
  return {
    read: () => {
      lastReadMillis = clock.currentTimeMillisUnsafe()
      return depth
    },
    stored: () => {
      depth++
    },
    counted: (records) => {
      depth = records
    },
    isRead: (nowMillis) => nowMillis - lastReadMillis < readMillis
  }
}

/** A binding whose dead letter topic is measured. */
export interface MeasuredBinding {
  readonly definition: BindingDefinition<unknown>
  readonly broker: Broker["Service"]
  readonly deadLetterDepth: DeadLetterDepth
}

const roundMillis = 10_000

/** Asks in rounds until it is interrupted, with one connection for each cluster at a time. */
export const run = (bindings: () => ReadonlyArray<MeasuredBinding>): Effect.Effect<never> =>
  Effect.gen(function* () {
    const nowMillis = yield* Clock.currentTimeMillis
    const read = bindings().filter(({ deadLetterDepth }) => deadLetterDepth.isRead(nowMillis))
    yield* Effect.forEach(
      Map.groupBy(read, ({ broker }) => broker),
      ([broker, measured]) => awaitAtMost(Effect.ignore(refresh(broker, measured)), roundMillis),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.sleep(roundMillis)
  }).pipe(Effect.forever)

/** A failed request leaves the last known depth. */
const refresh = (broker: Broker["Service"], measured: ReadonlyArray<MeasuredBinding>) =>
  Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        measured,
        ({ definition, deadLetterDepth }) =>
          Effect.ignore(Effect.map(count(admin, definition), (records) => deadLetterDepth.counted(records))),
        { discard: true }
      )
    )
  )

/** Counts the records from the committed position of replays on; from the start of the log where there is none. */
const count = (
  admin: Admin,
  { groupId, deadLetterTopic }: BindingDefinition<unknown>
): Effect.Effect<number, BrokerError> =>
  Effect.gen(function* () {
    const logOffsets = yield* admin.topicOffsets(deadLetterTopic)
    const committed = yield* admin.committedOffsets(TopicName.deadLetterGroup(groupId), [deadLetterTopic])
    const positions = new Map(committed.map(({ partition, offset }) => [partition, offset]))
    let records = 0n
    for (const { partition, logStart, logEnd } of logOffsets) {
      const position = positions.get(partition) ?? logStart
      records += logEnd - (position < logStart || position > logEnd ? logStart : position)
    }
    return Number(records)
  }).pipe(Effect.catchTag("UnknownTopic", () => Effect.succeed(0)))
