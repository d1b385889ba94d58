/**
 * The events that wait for a destination of their own, while other events of their listener have another one (`holds: "event"`). The first of
 * them that is delivered shows that the destination answers again.
 *
 * Pure state over a monotonic time in milliseconds.
 */

import { waitMillis } from "./outageGates.ts"

/** The most events that are remembered; the oldest are forgotten first. A forgotten event still waits in the table. */
const mostEvents = 10_000
const mostDestinations = 1000

export class WaitingEvents {
  readonly #sinceMillis = new Map<string, number>()
  readonly #destinations = new Map<string, string>()

  /** Whether any event waits. Cheap: it is asked for every delivery. */
  get isAnyWaiting(): boolean {
    return this.#destinations.size > 0
  }

  /** The event waits for this destination. Returns for how long: half of the outage's age, within bounds. */
  wait(eventId: string, destination: string, nowMillis: number): number {
    const since = this.#sinceMillis.get(destination) ?? nowMillis
    renew(this.#sinceMillis, destination, since, mostDestinations)
    renew(this.#destinations, eventId, destination, mostEvents)
    return waitMillis((nowMillis - since) / 2)
  }

  /** The event was delivered, or failed in another way. Returns the destination that it had waited for. */
  answered(eventId: string): string | undefined {
    const destination = this.#destinations.get(eventId)
    if (destination === undefined) return undefined
    this.#sinceMillis.delete(destination)
    for (const [id, waitsFor] of this.#destinations) if (waitsFor === destination) this.#destinations.delete(id)
    return destination
  }
}

/** Sets an entry as the newest one, and drops the oldest when there are too many. */
const renew = <A>(entries: Map<string, A>, key: string, value: A, most: number): void => {
  entries.delete(key)
  if (entries.size >= most) entries.delete(entries.keys().next().value!)
  entries.set(key, value)
}
