/**
 * The time that a producer gives to records without one, after a broker has refused it (ruling 76). A topic refuses a time that is too far
 * from its broker's (`message.timestamp.after.max.ms`, by default an hour in Kafka 4), so a node whose clock is off could publish nothing.
 *
 * A Kafka broker does not tell its time. So the clock tries the times around this node's: an hour earlier, an hour later, two hours earlier
 * and so on, and keeps what the topic accepts for ten minutes.
 */

const hourMillis = 3_600_000

/** The last correction is 2^16 hours, about seven years. */
const corrections: ReadonlyArray<number> = Array.from({ length: 17 }, (_, i) => 2 ** i * hourMillis).flatMap(
  (millis) => [-millis, millis]
)

/** A clock may be set right at any time: a correction ends after this long. */
const keptMillis = 600_000

interface Correction {
  index: number
  sinceMillis: number
}

/** The next time to try for a record. */
export interface NextTime {
  /** Milliseconds to add to this node's time. */
  readonly millis: number
  /** A line for the log; undefined when the log has told of this already. */
  readonly log: string | undefined
}

/** Between two log lines about refused times of the records' own, by topic. */
const logGapMillis = 60_000

/** The clock of one producer. For adapters of the Broker port. */
export class ProducerClock {
  /** The accepted corrections by topic, only of topics that refused this node's time. */
  readonly #corrections = new Map<string, Correction>()
  /** When the log last told of refused times of records, by topic. */
  readonly #logged = new Map<string, number>()

  /** Milliseconds to add to this node's time for a new record of the topic. 0 as long as the topic accepts this node's time. */
  correctionMillis(topic: string, nowMillis: number): number {
    if (this.#corrections.size === 0) return 0
    const correction = this.#corrections.get(topic)
    if (correction === undefined) return 0
    if (nowMillis - correction.sinceMillis < keptMillis) return corrections[correction.index]!
    this.#corrections.delete(topic)
    return 0
  }

  /**
   * The topic refused a record that had this correction, or a time of its own that may be replaced. Returns what to try next, or undefined
   * when all was refused.
   */
  refused(topic: string, correctionMillis: number | "ownIfAccepted", nowMillis: number): NextTime | undefined {
    if (correctionMillis === "ownIfAccepted") {
      const log = this.#isLogDue(topic, nowMillis) ? ownTimeText(topic) : undefined
      return { millis: this.correctionMillis(topic, nowMillis), log }
    }
    const known = this.#corrections.get(topic)
    // Another record has found a newer correction meanwhile.
    if (known !== undefined && corrections[known.index] !== correctionMillis) {
      return { millis: corrections[known.index]!, log: undefined }
    }
    const index = known === undefined ? 0 : known.index + 1
    if (index >= corrections.length) {
      this.#corrections.delete(topic)
      return undefined
    }
    this.#corrections.set(topic, { index, sinceMillis: nowMillis })
    return { millis: corrections[index]!, log: correctionText(topic, corrections[index]!) }
  }

  /** Whether the log tells of a refused time of a record now. */
  #isLogDue(topic: string, nowMillis: number): boolean {
    const last = this.#logged.get(topic)
    if (last !== undefined && Math.abs(nowMillis - last) < logGapMillis) return false
    this.#logged.set(topic, nowMillis)
    return true
  }
}

const ownTimeText = (topic: string): string =>
  `Topic '${topic}' refuses the time of a record; such records get the present time. It allows message.timestamp.before.max.ms and message.timestamp.after.max.ms around its broker's time.`

const correctionText = (topic: string, millis: number): string =>
  `Topic '${topic}' refuses the time of this node's clock; its records get a time ${Math.abs(millis) / hourMillis} hours ${millis < 0 ? "earlier" : "later"}. Check this node's clock and message.timestamp.after.max.ms of the topic.`
