/** Counts handled records, and measures from the first to the last. */
import { Deferred, Duration, Effect, Schema } from "effect"
import type { Samples } from "./Benchmark.ts"
import { numberOf } from "./kafka.ts"
import { type Moment, now, pace, since } from "./stopwatch.ts"

/** The round is invalid: records are missing or arrived twice. */
class RecordsAmiss extends Schema.TaggedError<RecordsAmiss>()("RecordsAmiss", {
  expected: Schema.Int,
  arrived: Schema.Int,
  repeated: Schema.Int
}) {
  override get message(): string {
    return `${this.arrived} of ${this.expected} records arrived, ${this.repeated} of them more than once`
  }
}

export class Arrivals {
  readonly #expected: number
  readonly #first: number
  readonly #seen: Uint8Array
  readonly #all = Deferred.makeUnsafe<void>()
  #arrived = 0
  #repeated = 0
  #started = now()
  #spent = now()

  /** Counts the `expected` records numbered from `first` on, and ignores others. */
  constructor(expected: number, first = 0) {
    this.#expected = expected
    this.#first = first
    this.#seen = new Uint8Array(expected)
  }

  /** Counts a handled record. */
  add(value: Uint8Array | null): void {
    const number = numberOf(value!) - this.#first
    if (number < 0 || number >= this.#expected) return
    if (this.#arrived === 0) this.#started = now()
    if (this.#seen[number] !== 0) {
      this.#repeated++
      return
    }
    this.#seen[number] = 1
    if (++this.#arrived < this.#expected) return
    this.#spent = since(this.#started)
    Deferred.doneUnsafe(this.#all, Effect.void)
  }

  /** Waits for all records. Fails when some are missing after the time limit. */
  all(bound: Duration.Input = Duration.minutes(3)): Effect.Effect<void, RecordsAmiss> {
    return Deferred.await(this.#all).pipe(
      Effect.timeoutOrElse({ duration: bound, orElse: () => Effect.fail(this.#amiss()) })
    )
  }

  /** The rate from the first record to the last. Call it after the consumer has stopped, so that duplicates fail the round. */
  readonly pace: Effect.Effect<Samples, RecordsAmiss> = Effect.suspend(() =>
    this.#repeated > 0 ? Effect.fail(this.#amiss()) : Effect.succeed(pace(this.#spent, this.#expected))
  )

  /** Time since the first record, of this moment. */
  get sinceFirst(): Moment {
    return since(this.#started)
  }

  #amiss(): RecordsAmiss {
    return new RecordsAmiss({ expected: this.#expected, arrived: this.#arrived, repeated: this.#repeated })
  }
}
