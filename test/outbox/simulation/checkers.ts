/** The rules that a finished run must keep. Each checker returns the violations that it found. */

export interface Delivery {
  readonly eventId: string
  readonly aggregate: string
  readonly startedAt: number
  endedAt: number | undefined
  outcome: "running" | "ok" | "failed" | "died"
}

export interface Row {
  readonly eventId: string
  readonly aggregate: string
  readonly seq: number
  readonly status: number
  readonly attempts: number
}

export interface History {
  readonly deliveries: ReadonlyArray<Delivery>
  /** The table at the end, in insertion order. */
  readonly rows: ReadonlyArray<Row>
  /** Status changes seen by looking at the table now and then, as `from>to` per event. */
  readonly transitions: ReadonlyArray<{ readonly eventId: string; readonly from: number; readonly to: number }>
  readonly faults: ReadonlyArray<string>
  /** When each event was first seen DEAD. */
  readonly deadAt: ReadonlyMap<string, number>
}

type Check = (history: History) => ReadonlyArray<string>

const [DONE, DEAD] = [1, 3]

/** Every committed event ended: handled, or dead after failures. */
export const nothingLost: Check = ({ rows, deliveries }) => {
  const handled = new Set(deliveries.filter((d) => d.outcome === "ok").map((d) => d.eventId))
  return rows.flatMap((row) => {
    if (row.status === DONE)
      return handled.has(row.eventId) ? [] : [`${row.eventId} is DONE, but no listener handled it`]
    return row.status === DEAD ? [] : [`${row.eventId} was never finished (status ${row.status})`]
  })
}

export const terminalStaysTerminal: Check = ({ transitions }) =>
  transitions
    .filter(({ from }) => from === DONE || from === DEAD)
    .map(({ eventId, from, to }) => `${eventId} went from ${from} to ${to}`)

/** When a listener starts with an event, everything before it in its aggregate has been handled or is dead. */
export const orderPerAggregate: Check = ({ rows, deliveries, deadAt }) => {
  const problems: Array<string> = []
  const firstOk = new Map<string, number>()
  for (const d of deliveries) {
    if (d.outcome === "ok" && !(firstOk.get(d.eventId)! <= d.endedAt!)) firstOk.set(d.eventId, d.endedAt!)
  }
  const before = new Map<string, ReadonlyArray<string>>()
  const soFar = new Map<string, Array<string>>()
  for (const { eventId, aggregate } of rows) {
    const list = soFar.get(aggregate) ?? []
    before.set(eventId, [...list])
    soFar.set(aggregate, [...list, eventId])
  }
  for (const d of deliveries) {
    for (const earlier of before.get(d.eventId) ?? []) {
      const finished = Math.min(
        firstOk.get(earlier) ?? Number.POSITIVE_INFINITY,
        deadAt.get(earlier) ?? Number.POSITIVE_INFINITY
      )
      if (finished > d.startedAt)
        problems.push(`${d.eventId} started at ${d.startedAt} before ${earlier} ended (${finished})`)
    }
  }
  return problems
}

/** Attempts count failures that were recorded: never more than happened, and exactly those where nothing went wrong. */
export const attemptsExact: Check = ({ rows, deliveries, faults }) => {
  const failures = Object.groupBy(
    deliveries.filter((d) => d.outcome === "failed"),
    (d) => d.eventId
  )
  return rows.flatMap((row) => {
    const happened = failures[row.eventId]?.length ?? 0
    // The last failure of a dead event is its death, not a retry.
    const expected = row.status === DEAD ? happened - 1 : happened
    const fine = faults.length === 0 ? row.attempts === expected : row.attempts <= happened
    return fine ? [] : [`${row.eventId} has ${row.attempts} attempts after ${happened} failures`]
  })
}

export const duplicatesExplained: Check = ({ deliveries, faults }) => {
  if (faults.length > 0) return []
  const times = Object.groupBy(
    deliveries.filter((d) => d.outcome === "ok"),
    (d) => d.eventId
  )
  return Object.entries(times)
    .filter(([, list]) => list!.length > 1)
    .map(([eventId, list]) => `${eventId} was handled ${list!.length} times without any fault`)
}
