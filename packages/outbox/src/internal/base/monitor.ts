/**
 * The problems of one outbox: user functions that fail, listeners that fail, destinations that are down, connections that take no writes, fibers that died. Health shows
 * them, and the log tells each at once and then at most once a minute.
 *
 * The parts of an outbox that share a store share a monitor.
 */

/** The kind of thing that has a problem. */
export type ProblemSource = "fiber" | "listener" | "destination" | "database" | "function"

/** A problem that occurred within the last ten minutes. */
export interface Problem {
  /** `fiber`: a fiber of the outbox died and was started again. `listener`: the last delivery to a listener failed. `destination`: a
   * listener reported that its destination is down. `database`: a connection takes no writes. `function`: another function of the user
   * failed. */
  readonly source: ProblemSource
  /** The fiber, the listener as `aggregateType:eventType`, the destination, `read-only connection`, or the function. */
  readonly name: string
  /** How often it occurred since it was last well. */
  readonly count: number
  /** The text of the last occurrence. */
  readonly lastError: string
  /** When it first occurred since it was last well, in epoch milliseconds by this process's clock. */
  readonly sinceMillis: number
  /** When it last occurred, or an event last waited for it, in epoch milliseconds by this process's clock. */
  readonly lastMillis: number
}

/** How long a problem is shown after it last occurred. */
const shownMillis = 600_000

/** Between two log lines about one problem. */
const logGapMillis = 60_000

/** The most problems that are kept; the oldest are dropped first. */
const mostProblems = 1000

interface Entry {
  count: number
  lastError: string
  readonly sinceMillis: number
  lastMillis: number
  loggedMillis: number
}

export class Monitor {
  readonly #entries: Readonly<Record<ProblemSource, Map<string, Entry>>> = {
    fiber: new Map(),
    listener: new Map(),
    destination: new Map(),
    database: new Map(),
    function: new Map()
  }

  readonly #onConnectionsRefused = new Set<() => void>()

  /** Calls back whenever connections turned out to take no writes. Returns the end of it. */
  watchConnections(onRefused: () => void): () => void {
    this.#onConnectionsRefused.add(onRefused)
    return () => void this.#onConnectionsRefused.delete(onRefused)
  }

  /** Connections of the pool take no writes: what holds one must make it anew. */
  connectionsRefused(): void {
    for (const onRefused of [...this.#onConnectionsRefused]) onRefused()
  }

  /** Notes a problem. True when the log should tell of it now: the first time, and once a minute after that. */
  report(source: ProblemSource, name: string, error: string, nowMillis: number): boolean {
    const entries = this.#entries[source]
    const known = entries.get(name)
    if (known !== undefined && nowMillis - known.lastMillis < shownMillis) {
      known.count++
      known.lastError = error
      known.lastMillis = nowMillis
      const isDue = nowMillis - known.loggedMillis >= logGapMillis
      if (isDue) known.loggedMillis = nowMillis
      return isDue
    }
    if (entries.size >= mostProblems) for (const oldest of [...entries.keys()].slice(0, 1)) entries.delete(oldest)
    entries.set(name, {
      count: 1,
      lastError: error,
      sinceMillis: nowMillis,
      lastMillis: nowMillis,
      loggedMillis: nowMillis
    })
    return true
  }

  /** Notes that a problem is still there, without another occurrence: an event waits for its end. */
  persists(source: ProblemSource, name: string, nowMillis: number): void {
    const known = this.#entries[source].get(name)
    if (known !== undefined) known.lastMillis = nowMillis
  }

  /** Notes that this listener or destination works again. True when it had a problem. */
  clear(source: ProblemSource, name: string): boolean {
    const entries = this.#entries[source]
    return entries.size > 0 && entries.delete(name)
  }

  /** Whether anything of this kind has a problem. Cheap: it is asked for every delivery. */
  has(source: ProblemSource): boolean {
    return this.#entries[source].size > 0
  }

  /** How often the problem occurred since it was last well; 0 when it has none. */
  count(source: ProblemSource, name: string): number {
    return this.#entries[source].get(name)?.count ?? 0
  }

  /** The problems of the last ten minutes. */
  problems(nowMillis: number): ReadonlyArray<Problem> {
    return (Object.keys(this.#entries) as ReadonlyArray<ProblemSource>).flatMap((source) =>
      [...this.#entries[source]]
        .filter(([, entry]) => nowMillis - entry.lastMillis < shownMillis)
        .map(([name, { count, lastError, sinceMillis, lastMillis }]) => ({
          source,
          name,
          count,
          lastError,
          sinceMillis,
          lastMillis
        }))
    )
  }
}

const monitors = new WeakMap<object, Monitor>()

/** The monitor of a store, by the identity of its table names: a store that wraps another one has the same monitor. */
export const monitorOf = (store: { readonly names: object }): Monitor => {
  const known = monitors.get(store.names)
  if (known !== undefined) return known
  const monitor = new Monitor()
  monitors.set(store.names, monitor)
  return monitor
}
