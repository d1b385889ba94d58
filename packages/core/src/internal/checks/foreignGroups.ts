/**
 * Looks for other groups that use a binding's retry and dead letter topics, by the marks of the newest copies in them (ruling 71).
 */
import * as Effect from "effect/Effect"
import type { Admin } from "../../Broker.ts"
import type { SharedTopic } from "../../EventBusEvent.ts"
import * as CopyOwner from "../record/copyOwner.ts"

/** Newest records of each partition that are looked at. */
const newestRecords = 100

/** Longest time of the whole look. */
const look = "1 second"

/** Finds them within a second. It leaves out a topic that is missing, may not be read, or does not answer in time. */
export const find = (
  admin: Admin,
  topics: ReadonlyArray<string>,
  groups: CopyOwner.Groups
): Effect.Effect<ReadonlyArray<SharedTopic>> => {
  const { tail } = admin
  if (tail === undefined) return Effect.succeed([])
  const found: Array<SharedTopic> = []
  const lookAt = (topic: string) =>
    Effect.map(tail(topic, newestRecords), (records) => {
      const owners = new Set(records.flatMap((record) => CopyOwner.foreign(record, groups) ?? []))
      if (owners.size > 0) found.push({ topic, groups: Array.from(owners).sort() })
    })
  return Effect.forEach(topics, (topic) => Effect.ignore(lookAt(topic)), {
    concurrency: "unbounded",
    discard: true
  }).pipe(
    Effect.timeoutOption(look),
    Effect.map(() => found.sort((a, b) => (a.topic < b.topic ? -1 : 1)))
  )
}

/** `'orders.DLT' (billing, shipping)`. */
export const describe = ({ topic, groups }: SharedTopic): string =>
  `'${topic}' (${groups.map((group) => `group '${group}'`).join(", ")})`
