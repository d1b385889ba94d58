/** The record with the partition that a user's partitioner chooses. */
import * as Result from "effect/Result"
import { RecordRejected } from "../../BrokerError.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as Failure from "../failure/failure.ts"

/** `choose` calls the partitioner. A throw, and an answer that is no partition of the topic, is `RecordRejected`: Kafka's own choice would break the user's order. */
export const partitioned = (
  record: ProducerRecord,
  partitions: number,
  choose: (partitions: number) => number | undefined
): Result.Result<ProducerRecord, RecordRejected> => {
  try {
    const chosen = UserFunction.plain("the partitioner", choose(partitions), "a partition")
    if (chosen === undefined) return Result.succeed(record)
    if (isWithin(chosen, partitions)) return Result.succeed({ ...record, partition: chosen })
    const found = typeof chosen === "number" ? String(chosen) : UserFunction.kindOf(chosen)
    throw new RangeError(`it returned ${found}; a whole number from 0 to ${partitions - 1} is expected`)
  } catch (thrown) {
    const { className, message } = Failure.fromUnknown(thrown)
    const detail = `its partitioner failed: ${message === "" ? className : message}`
    return Result.fail(new RecordRejected({ topic: record.topic, detail }))
  }
}

const isWithin = (chosen: number, partitions: number): boolean =>
  Number.isInteger(chosen) && chosen >= 0 && chosen < partitions
