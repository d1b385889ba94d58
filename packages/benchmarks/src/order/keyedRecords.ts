/** Records whose key follows from their number, and what became of them: shared by the rows of `bench order`. */
import { Binding, type Delivery, RetryPolicy, Route, Serde, TopicName } from "@eventbus/core"
import { Data, Effect } from "effect"
import { Arrivals } from "../harness/Arrivals.ts"
import type { ProcessInput } from "../harness/Benchmark.ts"
import { numberOf } from "../harness/kafka.ts"

export type Incoming = Delivery.Delivery<Uint8Array | null, Uint8Array | null>

class Unavailable extends Data.TaggedError("Unavailable") {}

/** One error for all records, since the engine's cost of making an error is not measured. */
export const unavailable = Effect.fail(new Unavailable())

/** A binding that keeps the order of each key, with one retry topic and one attempt in place. */
export const ordered = (
  { topic, groupId }: Pick<ProcessInput, "topic" | "groupId">,
  delayMillis: number,
  handler: (delivery: Incoming) => Effect.Effect<void, Unavailable>
) =>
  Binding.make("order", {
    ...{ topic, groupId, value: Serde.bytes, ackMode: "MANUAL", orderingMode: "PER_KEY" },
    // Participants that share a topic must not meet in a retry topic.
    naming: TopicName.perGroup,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: delayMillis }] }),
    onError: { Unavailable: Route.retry },
    handler
  })

/** One record in this many fails once. */
export const every = 20

export const isRetried = ({ tier }: Incoming): boolean => tier > 0

/** The records of one round. Key of record n is n modulo the number of keys. */
export class KeyedRecords {
  readonly arrivals: Arrivals
  /** Milliseconds beyond the due time of each head. */
  readonly late: Array<number> = []
  /** Milliseconds from the end of a head to the start of its first follower, where that had come to the main topic's loop before. */
  readonly behind: Array<number> = []
  /** Records that were handled behind a later one of their key. */
  overtaken = 0
  readonly #keys: number
  readonly #delayMillis: number
  readonly #fails: (number: number, key: number) => boolean
  readonly #failed: Uint8Array
  readonly #last: Int32Array
  readonly #headEnd: Float64Array
  /** By key: the highest number of its partition that was seen when its head ended. */
  readonly #seenAtEnd: Int32Array
  /** By partition: the highest number that was seen. */
  readonly #seen: Array<number> = []

  constructor(records: number, keys: number, delayMillis: number, fails: (number: number, key: number) => boolean) {
    this.arrivals = new Arrivals(records)
    this.#keys = keys
    this.#delayMillis = delayMillis
    this.#fails = fails
    this.#failed = new Uint8Array(records)
    this.#last = new Int32Array(keys).fill(-1)
    this.#headEnd = new Float64Array(keys)
    this.#seenAtEnd = new Int32Array(keys)
  }

  /** Takes a delivery. False when it fails. */
  take(delivery: Incoming): boolean {
    const number = numberOf(delivery.value!)
    const key = number % this.#keys
    const { partition } = delivery.record
    const isHead = isRetried(delivery)
    if (isHead) this.late.push(lateness(delivery, this.#delayMillis))
    else if (this.#headEnd[key]! > 0) {
      if (number < this.#seenAtEnd[key]!) this.behind.push(performance.now() - this.#headEnd[key]!)
      this.#headEnd[key] = 0
    }
    if (!isHead && !(number <= this.#seen[partition]!)) this.#seen[partition] = number
    if (this.#failed[number] === 0 && this.#fails(number, key)) {
      this.#failed[number] = 1
      return false
    }
    if (number < this.#last[key]!) this.overtaken++
    else this.#last[key] = number
    this.arrivals.add(delivery.value)
    if (isHead) {
      this.#headEnd[key] = performance.now()
      this.#seenAtEnd[key] = this.#seen[partition] ?? 0
    }
    return true
  }

  /** Fails when a head was early. */
  get samples() {
    return this.late.some((millis) => millis < 0)
      ? Effect.fail(`a head was handled ${-Math.min(...this.late)} ms early`)
      : Effect.succeed({ late: this.late, behind: this.behind, overtaken: [this.overtaken] })
  }
}

/** The due time of a head, by its own header. */
const lateness = ({ record }: Incoming, delayMillis: number): number => {
  const header = record.headers.findLast(({ key }) => key === "x-eventbus-retry-timestamp")
  return Date.now() - (Number(Buffer.from(header!.value!).toString()) + delayMillis)
}
