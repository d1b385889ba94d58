/**
 * The text that says where a page ended: for each partition, from 0, the offset below which nothing was shown yet. Dead letters that arrive later lie above it. Of a partition that
 * it does not name, nothing was shown. Those of several dead letter topics are separated by `_`.
 */
const offsets = /^(?:\d{1,19}(?:\.\d{1,19})*)?(?:_(?:\d{1,19}(?:\.\d{1,19})*)?)*$/

/** Longest text that is read. Kafka's largest topics have some thousands of partitions. */
const longest = 200_000

/** One list for each dead letter topic. That of a topic that is missing, or has no letter, is empty. */
export const write = (before: ReadonlyArray<ReadonlyArray<bigint>>): string =>
  before.map((each) => each.join(".")).join("_")

/** Undefined for a text that is no cursor. */
export const read = (text: string): ReadonlyArray<ReadonlyArray<bigint>> | undefined =>
  typeof text === "string" && text !== "" && text.length <= longest && offsets.test(text)
    ? text.split("_").map((each) => (each === "" ? [] : each.split(".").map(BigInt)))
    : undefined
