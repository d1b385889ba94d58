/**
 * Planted bugs about figures (ruling 75): each makes one of them false, where nothing else is wrong.
 */
import { Effect } from "effect"
import type { Scenario } from "../../scenario/Scenario.ts"
import { some } from "../sabotage.ts"
import type { PlantedBug } from "./PlantedBug.ts"

const reads = ({ actions }: Scenario): boolean => actions.some(({ _tag }) => _tag === "Read")

const hasTiers = some(({ tiers }) => tiers.length > 0)

interface FalseFigure {
  readonly name: string
  readonly seenBy: ReadonlyArray<string>
  readonly needs?: (scenario: Scenario) => boolean
}

/** Figures of which the bug shows one too many wherever there is something to show. */
const counters: ReadonlyArray<FalseFigure> = [
  { name: "eventbus.records.processed", seenBy: ["counted"] },
  { name: "eventbus.records.failed", seenBy: ["counted"] },
  { name: "eventbus.records.dlq", seenBy: ["counted"] },
  { name: "eventbus.records.routed", seenBy: ["counted"], needs: hasTiers },
  { name: "eventbus.records.skipped", seenBy: ["counted"] },
  { name: "eventbus.records.gone", seenBy: ["counted"], needs: reads },
  { name: "eventbus.circuit.transitions", seenBy: ["counted"], needs: some(({ breaker }) => breaker !== undefined) },
  { name: "eventbus.publish.failed", seenBy: ["counted"] },
  { name: "eventbus.poll.interval.safety.triggered", seenBy: ["counted"] },
  { name: "eventbus.retry.count.count", seenBy: ["counted"] },
  { name: "eventbus.retry.count.sum", seenBy: ["counted"] },
  { name: "kafka.consumer.records.consumed", seenBy: ["counted"] },
  { name: "messaging.client.consumed.messages", seenBy: ["counted"] },
  { name: "messaging.client.sent.messages", seenBy: ["counted"] }
]

/** Figures of which the bug always shows one too many. */
const others: ReadonlyArray<FalseFigure> = [
  { name: "eventbus.processing.duration.count", seenBy: ["durations"] },
  { name: "eventbus.processing.duration.sum", seenBy: ["durations"] },
  { name: "eventbus.circuit.state", seenBy: ["figures-shown"], needs: some(({ breaker }) => breaker !== undefined) },
  { name: "eventbus.container.state", seenBy: ["figures-shown"] },
  { name: "eventbus.consumers.running", seenBy: ["figures-shown"] },
  { name: "eventbus.consumer.lag", seenBy: ["figures-agree"] },
  { name: "kafka.consumer.lag", seenBy: ["figures-agree"] },
  { name: "kafka.consumer.records.lag.max", seenBy: ["figures-agree"] },
  { name: "eventbus.retry.tier.depth", seenBy: ["figures-agree"], needs: hasTiers },
  { name: "eventbus.partition.stalled", seenBy: ["figures-agree"] },
  { name: "eventbus.oldest.record.age", seenBy: ["figures-held"] },
  { name: "eventbus.dlt.depth", seenBy: ["depth"], needs: reads }
]

const oneTooMany =
  (least: number) =>
  ({ name, seenBy, needs }: FalseFigure): PlantedBug => ({
    title: `shows one too many in ${name}`,
    seenBy,
    ...(needs === undefined ? {} : { needs }),
    changeFigure: (figure, value) => (figure === name && value >= least ? value + 1 : value)
  })

export const figureBugs: ReadonlyArray<PlantedBug> = [
  ...counters.map(oneTooMany(1)),
  ...others.map(oneTooMany(Number.NEGATIVE_INFINITY)),
  {
    title: "shows no dead letters where some wait",
    seenBy: ["depth"],
    needs: reads,
    changeFigure: (figure, value) => (figure === "eventbus.dlt.depth" ? 0 : value)
  },
  {
    title: "forgets the gauge of the dead letter depth",
    seenBy: ["depth"],
    needs: reads,
    changeFigure: (figure, value) => (figure === "eventbus.dlt.depth" ? undefined : value)
  },
  {
    title: "believes that the log goes on behind its end",
    seenBy: ["lag"],
    sabotage: {
      events: () => (event) =>
        Effect.succeed([
          event._tag === "Fetched"
            ? { ...event, chunk: { ...event.chunk, highWatermark: event.chunk.highWatermark + 3n } }
            : event
        ])
    }
  }
]
