/**
 * Turns what of a binding waits for a decision into answers that JSON can hold. Without `payload`, nothing in them quotes a record.
 */
import { DeadLetterSelection, type Snapshot } from "@eventbus/core"
import type * as Answers from "../../HeldAnswers.ts"
import type { Payload } from "../../Mask.ts"
import { given, isoOf } from "../answersOf.ts"
import { textOf } from "../masking.ts"

type Parts = Pick<Snapshot.BindingSnapshot, "held" | "partitions" | "trials" | "unreadableLetters">

export const heldOf = (parts: Parts, payload: Payload): Answers.AllHeld => ({
  held: [...recordsOf(parts, payload), ...candidatesOf(parts), ...batchesOf(parts)]
})

const bothDecisions = ["skip", "dead-letter"] as const

const recordsOf = ({ held }: Parts, payload: Payload): ReadonlyArray<Answers.HeldRecord> =>
  held.map((record) => ({
    ...{ position: DeadLetterSelection.formatPosition(record), topic: record.topic, kind: "record" },
    ...{ decisions: bothDecisions, since: isoOf(record.sinceMillis), exceptionClass: record.failure.className },
    ...given("message", textOf(payload, record.failure.message))
  }))

const candidatesOf = ({ trials }: Parts): ReadonlyArray<Answers.HeldRecord> => {
  const only = trials?.only
  if (only === undefined) return []
  const { topic, sinceMillis } = only
  return [
    {
      ...{ position: DeadLetterSelection.formatPosition(only), topic, kind: "candidate" },
      ...{ decisions: bothDecisions, since: isoOf(sinceMillis) }
    }
  ]
}

/** Those of the topics that the binding reads, and those of its dead letter topic. */
const batchesOf = ({ partitions, unreadableLetters }: Parts): ReadonlyArray<Answers.HeldRecord> =>
  [...partitions.flatMap(({ unreadable }) => unreadable ?? []), ...unreadableLetters].map((batch) => {
    const { topic, lastOffset, detail, remedy, sinceMillis } = batch
    return {
      ...{ position: DeadLetterSelection.formatPosition(batch), topic, kind: "batch", decisions: ["skip"] },
      ...{ since: isoOf(sinceMillis), lastOffset: String(lastOffset), detail: `${detail}. ${remedy}` }
    }
  })
