/**
 * The order per key: the keys below `perKey` of a binding. None has a default of its own in a file, because a binding with another `orderingMode` refuses the section.
 */
import { Choices, Defaults, Ranges } from "@eventbus/core"
import * as Schema from "effect/Schema"
import * as Durations from "./durations.ts"
import { duration, oneOf, section, whole } from "./leaves.ts"

const { perKey } = Defaults
const { perKey: range } = Ranges

/** The order per key of a binding. */
export const PerKey = section("How PER_KEY treats waiting keys; refused with another orderingMode.", {
  onDeadLetter: Schema.optionalKey(
    oneOf(
      `What a dead letter does to its key: it goes on, or waits for an operator. Default ${perKey.onDeadLetter}.`,
      Choices.perKey.onDeadLetter
    )
  ),
  holdForMs: Schema.optionalKey(
    duration(`How long \`hold\` waits. Default ${Durations.format(perKey.holdForMillis)}.`, range.holdFor)
  ),
  maxParkedKeys: Schema.optionalKey(
    whole(
      `Keys that may wait at once in all partitions of one consumer; then its partitions of the source wait. Default ${perKey.maxParkedKeys}.`,
      range.maxParkedKeys
    )
  ),
  maxParkedBytes: Schema.optionalKey(
    whole(
      `Bytes of waiting records in memory, per consumer; further ones are read again. Default ${perKey.maxParkedBytes}.`,
      range.maxParkedBytes
    )
  )
})
