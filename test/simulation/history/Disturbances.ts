/**
 * Disturbances that let records be handled twice, in the view of order per key: a crash, a lost session, a fault, or a failure while a partition is given up.
 */
import { topicOf } from "../scenario/retries.ts"
import type { Scenario } from "../scenario/Scenario.ts"
import type { Entry } from "./History.ts"

type Connector = Extract<Entry, { readonly _tag: "Connector" }>

export class Disturbances {
  /** Undefined while there was none. */
  first: string | undefined
  /** Whether a record was left in a retry topic: one without order that is finished behind it comes again. Keys that are done behind it move their locks. */
  leavesRetries = false
  /** Processes that stop, or are asked for a partition. */
  readonly #givingUp = new Set<string>()
  readonly #paused = new Set<string>()
  readonly #isRetry: (topic: string) => boolean

  constructor({ faults }: Scenario, isRetry: (topic: string) => boolean) {
    this.#isRetry = isRetry
    if (faults.faults.length > 0) this.first = "faults of the broker"
  }

  /** A call failed in a process. */
  failed(process: string, partition: string): void {
    if (!this.#givingUp.has(process)) return
    if (this.#isRetry(topicOf(partition))) this.leavesRetries = true
    else this.#add("a failure while the partition was given up")
  }

  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Connector":
        this.#event(entry)
        return
      case "ProcessStopping":
        this.#givingUp.add(entry.process)
        if (this.#paused.size > 0) this.#add("a pause while a process stopped")
        return
      case "ProcessKilled":
        this.#add("a crash")
        return
      case "Paused":
        this.#pause(entry.process, entry.process)
        return
      case "Resumed":
        this.#paused.delete(entry.process)
        return
      case "Broker":
        if (entry.entry._tag === "Lost") this.#add("a lost partition")
        if (entry.entry._tag === "Expired" || entry.entry._tag === "Fenced") this.#add("a lost session")
    }
  }

  #event({ event, process }: Connector): void {
    switch (event._tag) {
      case "Settled":
        if (event.settlement !== "Abandoned") return
        if (this.#isRetry(event.record.topic)) this.leavesRetries = true
        else this.#add("a record that was left for the next owner")
        return
      case "DrainTimedOut":
        this.#add("a drain that took too long")
        return
      case "PartitionRevoked":
        this.#givingUp.add(process)
        if (this.#paused.size > 0) this.#add("a pause while a partition was given up")
        return
      case "PartitionReleased":
        this.#givingUp.delete(process)
        return
      case "StateChanged":
        if (event.to === "PAUSED") this.#pause(process, process)
        else this.#paused.delete(process)
        return
      case "BreakerChanged":
        if (event.to === "CLOSED") this.#paused.delete(`${process} breaker`)
        else this.#pause(process, `${process} breaker`)
    }
  }

  #pause(process: string, what: string): void {
    this.#paused.add(what)
    if (this.#givingUp.has(process)) this.#add("a pause while a partition was given up")
  }

  #add(what: string): void {
    this.first ??= what
  }
}
