/**
 * The gates of listeners whose destination is down (ruling 87). A closed gate holds the events of its own listener, without a worker.
 * One event at a time is let through as a trial; the others wait for its result.
 *
 * Pure state over a monotonic time in milliseconds.
 */

/** The waits grow with the outage, a quarter of its age between trials and half of it between looks at an event. */
const shortestWaitMillis = 1000
const longestWaitMillis = 10_000
/** A trial without a result for so long no longer keeps the next one away. */
const trialTimeoutMillis = 30_000

interface Gate {
  readonly closedMillis: number
  error: string
  nextTrialMillis: number
  /** When the trial in progress began. */
  trialMillis: number | undefined
}

/** A wait of this length, within the bounds. */
export const waitMillis = (millis: number): number => Math.min(longestWaitMillis, Math.max(shortestWaitMillis, millis))

export class OutageGates {
  readonly #gates = new Map<string, Gate>()

  /** Whether any gate is closed. Cheap: it is asked for every delivery. */
  get isAnyClosed(): boolean {
    return this.#gates.size > 0
  }

  /** Undefined when an event of this listener may be delivered now. Otherwise how long it should wait, and why. */
  admit(key: string, nowMillis: number): { readonly delayMillis: number; readonly error: string } | undefined {
    const gate = this.#gates.get(key)
    if (gate === undefined) return undefined
    const { trialMillis } = gate
    const isTried = trialMillis !== undefined && nowMillis - trialMillis < trialTimeoutMillis
    if (!isTried && nowMillis >= gate.nextTrialMillis) {
      gate.trialMillis = nowMillis
      return undefined
    }
    return { delayMillis: waitMillis((nowMillis - gate.closedMillis) / 2), error: gate.error }
  }

  /** The destination is down. Returns how long the event that found out should wait. */
  close(key: string, error: string, nowMillis: number): number {
    const gate = this.#gates.get(key) ?? { closedMillis: nowMillis, error, nextTrialMillis: 0, trialMillis: undefined }
    const ageMillis = nowMillis - gate.closedMillis
    // A trial takes a worker for as long as the destination's client waits. Others have the worker for at least as long again.
    const tookMillis = gate.trialMillis === undefined ? 0 : nowMillis - gate.trialMillis
    gate.error = error
    gate.trialMillis = undefined
    gate.nextTrialMillis = nowMillis + Math.max(waitMillis(ageMillis / 4), tookMillis)
    this.#gates.set(key, gate)
    return waitMillis(ageMillis / 2)
  }

  /** The destination answers. True when the gate was closed. */
  open(key: string): boolean {
    return this.#gates.delete(key)
  }
}
