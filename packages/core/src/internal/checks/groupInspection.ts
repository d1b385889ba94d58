/** Looks at the group of a plan: which step of a move from another client to this one it is in, which of its topics the binding does not read, and how many records would wait in vain after a move (ruling 80). */
import * as Effect from "effect/Effect"
import type { Admin } from "../../Broker.ts"
import { pluralize } from "../base/pluralize.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import { countWaiting } from "./countWaiting.ts"
import * as GroupProtocol from "./groupProtocol.ts"
import * as OtherTopics from "./otherTopics.ts"
import type { Finding, Plan } from "./planTypes.ts"
import { springRecordsWaiting } from "./springRetryTopics.ts"

/** A client that may not describe the group, or read offsets, still gets all other findings. */
export const inspectGroup = (
  plan: Plan,
  admin: Admin,
  existing: ReadonlySet<string>
): Effect.Effect<ReadonlyArray<Finding>> => {
  const { groupId, partitionAssignmentStrategy: listed } = plan
  const members = Effect.flatMap(admin.describeGroup(groupId), (group) =>
    Effect.map(orNone(OtherTopics.inspect(plan, admin, existing, group)), (otherTopics) => [
      ...(plan.groupProtocol === "consumer"
        ? GroupProtocol.findingsOfBroker(group)
        : GroupProtocol.findings(listed, group)),
      ...otherTopics
    ])
  )
  const isMoving = AssignmentStrategy.foreign(listed).length > 0
  const waiting = isMoving ? recordsWaiting(plan, admin, existing) : Effect.succeed([])
  const found = [members, waiting, springRecordsWaiting(plan, admin, existing)].map(orNone)
  return Effect.map(Effect.all(found, { concurrency: "unbounded" }), (all) => all.flat())
}

const orNone = (findings: Effect.Effect<ReadonlyArray<Finding>, unknown>): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.orElseSucceed(findings, () => [])

/** The other client would never read these records: it knows no retry topics. */
const recordsWaiting = Effect.fnUntraced(function* (plan: Plan, admin: Admin, existing: ReadonlySet<string>) {
  const topics = plan.topics.flatMap(({ role, topic }) => (role === "retry" && existing.has(topic) ? [topic] : []))
  const counts = yield* Effect.forEach(topics, (topic) =>
    Effect.map(countWaiting(admin, groupReading(plan, topic), topic), (count) => ({ topic, count }))
  )
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  const subject = plan.groupId
  const by = counts.flatMap(({ topic, count }) => (count === 0 ? [] : [`${topic}: ${count}`])).join(", ")
  const finding: Finding =
    total === 0
      ? {
          ...{ severity: "info", code: "records-waiting", subject },
          message:
            "No record waits in a retry topic: none is left behind when the group moves back to the other client."
        }
      : {
          ...{ severity: "warning", code: "records-waiting", subject },
          message: `${pluralize(total, "record")} of the retry topics ${total === 1 ? "is" : "are"} not handled (${by}). The other client does not read them: before the last member of the connector stops, wait until none is left.`
        }
  return topics.length === 0 ? [] : [finding]
})

const groupReading = ({ consumers, groupId }: Plan, topic: string): string =>
  consumers.find(({ topics }) => topics.includes(topic))?.groupId ?? groupId
