/**
 * Help for those who write an adapter of the `Broker` port. Programs that use the connector need none of it.
 */
import * as Effect from "effect/Effect"
import type { ConsumerOptions } from "./Broker.ts"
import { UnexpectedBrokerError } from "./BrokerError.ts"
import * as Choices from "./Choices.ts"
import * as AssignmentStrategy from "./internal/port/assignmentStrategy.ts"
import * as Ids from "./internal/settings/ids.ts"
import * as Kinds from "./Kinds.ts"
import * as Ranges from "./Ranges.ts"

export { assign } from "./internal/assignment/assign.ts"
export type { Candidate } from "./internal/assignment/candidate.ts"
export { grantable } from "./internal/assignment/units.ts"
export { clients as clientsOf, refusal as refusalOf } from "./internal/checks/groupProtocol.ts"
export { honoursUnits, isEager } from "./internal/port/assignmentStrategy.ts"
export { isOfCopy as isCopyHeader } from "./internal/record/headerSets.ts"
export { refusedRecord, unreadableRecord } from "./internal/record/refusedRecord.ts"

const reader = { ...Ranges.reader, clientId: Kinds.string, isolationLevel: Kinds.oneOf(Choices.isolationLevel) }

const producer = {
  ...Ranges.producer,
  clientId: Kinds.string,
  acks: Kinds.oneOf(Choices.producer.acks),
  idempotent: Kinds.flag,
  compression: Kinds.oneOf(Choices.producer.compression)
}

/** Whether these are lists of topics, and each topic stands in one of them, once. */
const isDisjoint = (value: unknown): boolean => {
  const topics = Array.isArray(value) && value.every(Array.isArray) ? value.flat() : [undefined]
  return topics.every((topic) => typeof topic === "string") && new Set(topics).size === topics.length
}

/** The kinds of the options of the port, by operation: of those that may be left out, and of those that may not. */
const optionKinds = {
  reader: { optional: reader, required: {} },
  consumer: {
    optional: {
      ...reader,
      ...Ranges.consumer,
      groupInstanceId: Ids.member,
      groupProtocol: Kinds.oneOf(Choices.binding.groupProtocol),
      replacesGroupInstanceIds: Kinds.listOf(Ids.onWire, "a list of names"),
      mayJoin: Kinds.func,
      partitionAssignmentStrategy: Kinds.listOf(Kinds.oneOf(AssignmentStrategy.names), "a list of protocols"),
      copartitionedTopics: Kinds.make("lists of topics, none of which stands twice", isDisjoint)
    },
    required: { groupId: Ids.onWire, topics: Kinds.listOf(Kinds.string, "a list of topics") }
  },
  producer: { optional: producer, required: {} },
  transactionalProducer: {
    optional: { ...producer, fences: Kinds.listOf(Ids.onWire, "a list of transactional ids") },
    required: { transactionalId: Ids.onWire }
  }
} as const

/**
 * Fails with `UnexpectedBrokerError`, code `INVALID_CONFIG`, when an option is of another kind, or a number out of its range (ruling 84): what Kafka's clients would cut to
 * 32 bits, take for zero, or take for their default.
 */
export const checkOptions = (
  operation: keyof typeof optionKinds,
  options: object
): Effect.Effect<void, UnexpectedBrokerError> =>
  Effect.suspend(() => {
    const { optional, required } = optionKinds[operation]
    const found = Kinds.struct(optional, required)("options", options)
    const issues = found.map((each) => ({ ...each, path: each.path.replace(/^options\./, "") }))
    if (issues.length === 0) return Effect.void
    const detail = issues.map(({ path, found, allowed }) => `${path}: found ${found}, allowed is ${allowed}`).join("; ")
    return Effect.fail(new UnexpectedBrokerError({ operation, code: "INVALID_CONFIG", detail, retryable: false }))
  })

/** The settings of a fetch, in bytes where they are numbers, where `FetchOptions` leave them out. */
export const fetchDefaults = {
  maxPartitionFetchBytes: 1024 * 1024,
  maxRecordBytes: 16 * 1024 * 1024,
  isolationLevel: "read_committed"
} as const

/**
 * A compressed record may hold so many bytes of the headers that the connector writes into copies (`isCopyHeader`), beside the `maxRecordBytes` of the rest. So a copy
 * can be read wherever its source was (ruling 78). The connector writes far less.
 */
export const maxCopyHeaderBytes = 1024 * 1024

/** The most bytes that an adapter fetches of one partition of the topic at once. */
export const maxFetchBytes = (options: ConsumerOptions, topic: string): number => {
  const { maxPartitionFetchBytes = fetchDefaults.maxPartitionFetchBytes, maxBytesByTopic } = options
  return Math.min(maxPartitionFetchBytes, maxBytesByTopic?.get(topic) ?? maxPartitionFetchBytes)
}
