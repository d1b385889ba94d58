/**
 * The text that says where a page ended: for each partition, from 0, the offset below which nothing was shown yet. Dead letters that arrive later lie above it. Of a partition that
 * it does not name, nothing was shown.
 */

const offsets = /^\d{1,19}(?:\.\d{1,19})*$/

/** Longest text that is read. Kafka's largest topics have some thousands of partitions. */
const longest = 200_000

export const write = (before: ReadonlyArray<bigint>): string => before.join(".")

/** Undefined for a text that is no cursor. */
export const read = (text: string): ReadonlyArray<bigint> | undefined =>
  typeof text === "string" && text.length <= longest && offsets.test(text) ? text.split(".").map(BigInt) : undefined
