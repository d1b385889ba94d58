/**
 * The circuit breakers of a run, as their processes report them: the state of each, and the deliveries that hold its permits while it is half open.
 */
import type { CircuitBreaker } from "@eventbus/core"
import type { FailedDelivery } from "./accounts.ts"
import type { Entry } from "./History.ts"

export interface Breaker {
  state: CircuitBreaker.State
  /** Time until which the breaker was not closed; infinite while it is not closed. */
  notClosedUntilMillis: number
  /** Calls that began in the half-open state and still run. */
  readonly running: Set<number>
  /** Deliveries, by partition and offset, that hold a permit of the half-open state or used one up. */
  readonly trials: Set<string>
  /** In how many half-open states the trial call of a record has failed. */
  readonly failedTrials: Map<string, number>
}

type ConnectorEntry = Extract<Entry, { readonly _tag: "Connector" }>
type CalledEntry = Extract<Entry, { readonly _tag: "Called" }>

export class Breakers {
  private readonly all = new Map<string, Breaker>()

  of(process: string, binding: string): Breaker {
    const key = `${process} ${binding}`
    const known = this.all.get(key)
    if (known !== undefined) return known
    const fresh: Breaker = {
      state: "CLOSED",
      notClosedUntilMillis: -1,
      running: new Set(),
      trials: new Set(),
      failedTrials: new Map()
    }
    this.all.set(key, fresh)
    return fresh
  }

  called({ process, binding, call, partition, offsets }: CalledEntry): void {
    const breaker = this.of(process, binding)
    if (breaker.state !== "HALF_OPEN") return
    breaker.running.add(call)
    breaker.trials.add(trialOf(partition, offsets[0]))
  }

  /** Why the breaker holds the record of a failed delivery. */
  holding(process: string, event: ConnectorEntry["event"]): FailedDelivery["breaker"] {
    const { state, failedTrials } = this.of(process, event.binding)
    if (state === "OPEN") return "came while the breaker was open"
    if (event._tag !== "AttemptFailed" || state !== "HALF_OPEN" || saysNothing(event)) return undefined
    const trial = trialOf(`${event.topic}/${event.partition}`, event.record.offset)
    failedTrials.set(trial, (failedTrials.get(trial) ?? 0) + 1)
    return "was the one of a trial call"
  }

  /** An interrupted call returns its permit. A failed call keeps it for the next attempt. */
  returned(
    process: string,
    binding: string,
    call: number,
    partition: string,
    offset: bigint | undefined,
    cut: boolean
  ) {
    const breaker = this.of(process, binding)
    breaker.running.delete(call)
    if (cut) breaker.trials.delete(trialOf(partition, offset))
  }

  /** A record that was paused between two attempts has returned its permit, so it takes a new one. */
  resumed({ process, binding }: { readonly process: string; readonly binding: string }): void {
    this.of(process, binding).trials.clear()
  }

  connector({ process, event, atMillis }: ConnectorEntry): void {
    const breaker = this.of(process, event.binding)
    if (event._tag === "BreakerChanged") {
      breaker.state = event.to
      breaker.notClosedUntilMillis = event.to === "CLOSED" ? atMillis : Number.POSITIVE_INFINITY
      breaker.running.clear()
      breaker.trials.clear()
      return
    }
    if (event._tag === "PartitionLost") {
      // A record between two steps of its delivery has returned its permit.
      const lost = `${event.topic}/${event.partition} `
      for (const trial of breaker.trials) if (trial.startsWith(lost)) breaker.trials.delete(trial)
      return
    }
    if (!("record" in event) || breaker.state !== "HALF_OPEN") return
    const isOver = event._tag === "Settled" && (event.settlement === "Abandoned" || event.settlement === "Skipped")
    const isPermanent = event._tag === "AttemptFailed" && saysNothing(event)
    if (isOver || isPermanent) breaker.trials.delete(trialOf(`${event.topic}/${event.partition}`, event.record.offset))
  }
}

/** A record that cannot be read was not passed to the handler. */
const saysNothing = ({ attempt, failure }: Extract<ConnectorEntry["event"], { readonly _tag: "AttemptFailed" }>) =>
  attempt === 0 || permanentTags.has(failure.tag ?? "")

/** Errors that say nothing about the dependency (ruling 29). */
const permanentTags: ReadonlySet<string> = new Set(["Unwanted", "Harmless", "Alarm"])

export const trialOf = (partition: string, offset: bigint | undefined): string => `${partition} ${offset}`
