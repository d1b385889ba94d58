/**
 * Reads held records again. A held record may wait for days, and there may be as many as `maxParkedKeys`: memory has only where they lie. Counting their bodies in `maxParkedBytes` would
 * leave the followers of other keys no room for those days.
 *
 * A record that its retry topic has lost is taken from its source, without the story of its failure.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Reader } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import * as Detached from "./detached.ts"
import type { Entry } from "./entry.ts"
import { readAgain } from "./readAgain.ts"
import type { UnitOptions } from "./unitOptions.ts"

/** Bodies that are in memory at once. */
const mostAtOnce = 64

/** Reads the records of these keys, and hands each to `use`: undefined when neither its retry topic nor its source has it. A key that is not held any more is passed over. */
export const each = Effect.fnUntraced(function* (
  options: UnitOptions,
  entries: ReadonlyArray<Entry>,
  use: (entry: Entry, record: ConsumerRecord | undefined) => Effect.Effect<unknown>
) {
  if (entries.length === 0) return
  const opened = options.broker.reader({ isolationLevel: "read_uncommitted" })
  const log = new Log(yield* Effect.orDie(Effect.retry(opened, readAgain)))
  const oneByOne = Semaphore.makeUnsafe(1)
  const read = (entry: Entry) => Effect.orDie(Effect.retry(find(options, log, entry), readAgain))
  yield* Effect.forEach(
    entries.toSorted(byPlace),
    (entry) => {
      const { held } = entry
      if (held === undefined) return Effect.void
      return Effect.flatMap(oneByOne.withPermits(1)(read(entry)), (record) =>
        Effect.suspend(() => (entry.held === held ? use(entry, record) : Effect.void))
      )
    },
    { concurrency: mostAtOnce, discard: true }
  )
}, Effect.scoped)

/** Records that stand side by side are read together. */
const byPlace = (one: Entry, other: Entry): number =>
  one.part - other.part || Number((one.held?.offset ?? 0n) - (other.held?.offset ?? 0n))

const find = Effect.fnUntraced(function* ({ main, definition }: UnitOptions, log: Log, { held, part, offset }: Entry) {
  const { topic, partition } = main
  const lock = { topic: definition.tiers.topics[part - 1]!.topic, partition, offset: held!.offset }
  return (yield* log.at(lock)) ?? (yield* log.at({ topic, partition, offset }))
})

/** A reader that keeps what it has read last. */
class Log {
  readonly #reader: Reader
  #records: ReadonlyArray<ConsumerRecord> = []
  #from: RecordPosition | undefined
  #to = 0n

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** Undefined when the record is gone, or cannot be read. */
  at(wanted: RecordPosition): Effect.Effect<ConsumerRecord | undefined, BrokerError> {
    return Effect.suspend(() => {
      if (this.#has(wanted)) return Effect.succeed(this.#found(wanted))
      return Effect.flatMap(this.#reader.read(wanted), (read) => {
        if (read._tag !== "Fetched") return Effect.succeed(undefined)
        this.#records = read.chunk.records
        this.#from = wanted
        this.#to = read.chunk.nextOffset
        return this.#has(wanted)
          ? Effect.succeed(this.#found(wanted))
          : Effect.andThen(Effect.sleep("100 millis"), this.at(wanted))
      })
    })
  }

  #has({ topic, offset }: RecordPosition): boolean {
    return this.#from?.topic === topic && this.#from.offset <= offset && offset < this.#to
  }

  #found({ offset }: RecordPosition): ConsumerRecord | undefined {
    const found = this.#records.find((record) => record.offset === offset)
    return found && Detached.of(found)
  }
}
