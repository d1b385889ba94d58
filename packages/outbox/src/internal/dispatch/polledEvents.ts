/**
 * The events that the poller took lately. The hot path may come long after the commit, when the poller has delivered the event already, and
 * nothing of it is in flight any more.
 */

/** The most events that are remembered; the oldest are forgotten first. */
const mostEvents = 10_000

export class PolledEvents {
  readonly #takenNanos = new Map<string, bigint>()
  /** When the last forgotten event was taken. */
  #forgottenNanos: bigint | undefined

  /** The poller took an event. */
  add(eventId: string, nowNanos: bigint): void {
    this.#takenNanos.delete(eventId)
    if (this.#takenNanos.size >= mostEvents) {
      for (const [oldest, takenNanos] of this.#takenNanos) {
        this.#forgottenNanos = takenNanos
        this.#takenNanos.delete(oldest)
        break
      }
    }
    this.#takenNanos.set(eventId, nowNanos)
  }

  /**
   * Whether the poller took an event since it was written; undefined when that may be forgotten. Without the time of its write: whether
   * the poller took it lately.
   */
  hasTaken(eventId: string, writtenNanos: bigint | undefined): boolean | undefined {
    const takenNanos = this.#takenNanos.get(eventId)
    if (takenNanos !== undefined && (writtenNanos === undefined || takenNanos >= writtenNanos)) return true
    const forgottenNanos = this.#forgottenNanos
    if (writtenNanos === undefined || forgottenNanos === undefined) return false
    return forgottenNanos >= writtenNanos ? undefined : false
  }
}
