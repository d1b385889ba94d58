/**
 * How long a source keeps its records. With `orderingMode: "PER_KEY"` the records behind a parked key wait there.
 */

/** As far as the configuration of the topic says. */
export interface SourceRetention {
  /** After so long Kafka may delete a record, in milliseconds; undefined where it deletes none for its age. */
  readonly retentionMillis: number | undefined
  readonly isCompacted: boolean
}

export const read = (config: ReadonlyMap<string, string>): SourceRetention => {
  const policy = (config.get("cleanup.policy") ?? "delete").split(",").map((each) => each.trim())
  const millis = Number(config.get("retention.ms") ?? Number.NaN)
  const isLimited = policy.includes("delete") && Number.isSafeInteger(millis) && millis >= 0
  return { retentionMillis: isLimited ? millis : undefined, isCompacted: policy.includes("compact") }
}

/** Why the order of each key cannot be kept; undefined where the topic keeps its records for long enough. Without the full stop. */
export const refusal = (
  topic: string,
  { retentionMillis }: SourceRetention,
  delaysMillis: number
): string | undefined =>
  retentionMillis === undefined || retentionMillis >= 2 * delaysMillis
    ? undefined
    : `retention.ms of source '${topic}' is ${retentionMillis}; allowed with orderingMode PER_KEY is ${2 * delaysMillis} or more, twice all delays of the retries: Kafka may delete the records behind a parked key before they are handled`
