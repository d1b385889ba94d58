/**
 * Every assignment of a run, as the connectors report them.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { Assignment } from "./accounts.ts"
import type { PartitionName } from "./History.ts"

type Assigned = Extract<EventBusEvent.EventBusEvent, { readonly _tag: "PartitionAssigned" }>

export class Assignments {
  /** By process and partition, in order. */
  private readonly known = new Map<string, Array<Assignment>>()
  private begun = 0

  ofPartition(process: string, partition: PartitionName): ReadonlyArray<Assignment> {
    return this.known.get(`${process} ${partition}`) ?? []
  }

  /** The assignment under which a consumer calls its handler now. */
  current(process: string, consumer: number, partition: PartitionName): Assignment | undefined {
    return this.ofPartition(process, partition).findLast((assignment) => assignment.consumer === consumer)
  }

  ofProcess(process: string): ReadonlyArray<Assignment> {
    return [...this.known.values()].flat().filter((assignment) => assignment.process === process)
  }

  /** The assignments of all processes, the newest first. */
  newestFirst(partition: PartitionName): ReadonlyArray<Assignment> {
    const all = [...this.known.values()].flat().filter((assignment) => assignment.partition === partition)
    return all.sort((a, b) => b.number - a.number)
  }

  /** Begins an assignment. `endingSinceMillis` is the time since when its process stops; undefined when it does not stop. */
  begin(process: string, event: Assigned, endingSinceMillis: number | undefined): void {
    const partition: PartitionName = `${event.topic}/${event.partition}`
    // After a failed transaction the consumer starts again without an event for the end of the assignment.
    const before = this.current(process, event.consumer, partition)
    if (before?.state === "active") before.state = "closed"
    const known = this.known.get(`${process} ${partition}`) ?? []
    this.known.set(`${process} ${partition}`, known)
    known.push({
      number: ++this.begun,
      process,
      consumer: event.consumer,
      binding: event.binding,
      partition,
      generation: event.generation,
      position: event.position,
      state: "active",
      endingSinceMillis,
      drainTimedOut: false,
      publishFailed: false,
      abandonedMillis: undefined,
      highest: event.position - 1n,
      finished: new Set(),
      failed: new Set(),
      begun: new Set(),
      failedDeliveries: new Map(),
      abandonedCopies: new Set(),
      sent: new Map(),
      pending: new Set(),
      attempts: new Map(),
      budgetReached: false
    })
  }
}
