/**
 * Finds retry topics of tiers that a deploy has removed while keys were parked there (`orderingMode: "PER_KEY"`). Nobody reads their locks any more: what follows them in the source waits
 * until the tier is back, and new records of the same keys go by.
 */
import * as Effect from "effect/Effect"
import type { Admin, Broker } from "../../Broker.ts"
import { type BrokerError, UnexpectedBrokerError } from "../../BrokerError.ts"
import * as TopicName from "../../TopicName.ts"
import * as BigInts from "../base/bigInts.ts"
import { pluralize } from "../base/pluralize.ts"
import type { BindingFailures } from "../observe/ongoingFailures.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as Units from "./units.ts"

/** Between two looks, while a removed tier has locks. */
const lookMillis = 60_000

/** Tiers that are looked for behind the last one: no deploy removes more at once. */
const mostRemoved = 8

interface Options {
  readonly definition: BindingDefinition<unknown>
  readonly broker: Broker["Service"]
  readonly failures: BindingFailures
  /** A topic is found that was not found before. */
  readonly onFound: (topic: string, error: BrokerError) => void
}

/** Looks once, and again and again while something is found. */
export const look = ({ definition, broker, failures, onFound }: Options): Effect.Effect<void> => {
  if (!Units.areKept(definition)) return Effect.void
  const found = Effect.scoped(Effect.flatMap(broker.admin, (admin) => findAll(admin, definition)))
  let known: ReadonlySet<string> = new Set()
  const again: Effect.Effect<void, BrokerError> = Effect.flatMap(found, (removed) => {
    const topics = new Set(removed.map(({ topic }) => topic))
    for (const topic of known) if (!topics.has(topic)) failures.topics.worked(topic)
    for (const { topic, waiting } of removed) {
      const error = removedError(topic, waiting)
      if (known.has(topic)) failures.topics.failed(topic, error)
      else onFound(topic, error)
    }
    known = topics
    return removed.length === 0 ? Effect.void : Effect.delay(again, lookMillis)
  })
  // A right may be missing: these topics are not the binding's any more.
  return Effect.ignore(again)
}

const removedError = (topic: string, waiting: bigint): BrokerError =>
  new UnexpectedBrokerError({
    operation: `Reading retry topic '${topic}'`,
    code: "REMOVED_TIER",
    detail: `the binding does not have its tier any more. ${pluralize(Number(waiting), "record")} of parked keys wait there, and in the source those behind them. Nothing is lost: they go on when the tier is back`,
    retryable: true
  })

const findAll = Effect.fnUntraced(function* (admin: Admin, definition: BindingDefinition<unknown>) {
  const existing = new Set(yield* admin.listTopics)
  const removed = Sources.of(definition).flatMap((source) =>
    namesBehind(source).flatMap((topic) => (existing.has(topic) ? [find(admin, source.groupId, topic)] : []))
  )
  return (yield* Effect.all(removed)).flat()
})

/** The names that further tiers would have. A naming strategy may have one for all tiers, or none that Kafka takes. */
const namesBehind = ({ topic, groupId, naming, tiers }: BindingDefinition<unknown>): ReadonlyArray<string> => {
  const names = Array.from({ length: mostRemoved }, (_, at) => naming.retry({ topic, groupId }, tiers.count + at + 1))
  return Array.from(new Set(names)).filter(
    (name) => tiers.ofTopic(name) === undefined && TopicName.illegal(name) === undefined
  )
}

/** Empty where no unit of the group has read the topic, or nothing waits there. */
const find = Effect.fnUntraced(function* (admin: Admin, groupId: string, topic: string) {
  const logs = yield* ReplayProgress.logOffsetsOf(admin, topic)
  if (logs.length === 0) return []
  const commits = yield* admin.committedOffsets(groupId, [topic])
  const waiting = commits.reduce((sum, { partition, offset, metadata }) => {
    const log = logs.find((each) => each.partition === partition)
    if (log === undefined || CommitMetadata.parse(metadata).epoch === undefined) return sum
    const from = BigInts.max(offset, log.logStart)
    return from < log.logEnd ? sum + log.logEnd - from : sum
  }, 0n)
  return waiting === 0n ? [] : [{ topic, waiting }]
})
