/**
 * Writes what an operator must know into Effect's log: once when it happens, not once per attempt.
 */
import { Effect, type Scope } from "effect"
import type { EventBusEvent } from "../EventBusEvent.ts"
import type { EventHub } from "./eventHub.ts"

/** Logs the hub's events with the loggers of the fiber that calls this, until the scope closes. */
export const attach = (hub: EventHub): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const run = Effect.runForkWith(yield* Effect.context())
    const lastCrash = new Map<string, string>()
    const unsubscribe = hub.subscribe((event) => {
      const log = describe(event, lastCrash)
      if (log !== undefined) run(Effect.annotateLogs(log, annotations(event)))
    }, "rare")
    yield* Effect.addFinalizer(() => Effect.sync(unsubscribe))
  })

const describe = (event: EventBusEvent, lastCrash: Map<string, string>): Effect.Effect<void> | undefined => {
  switch (event._tag) {
    case "StateChanged": {
      const reasons = event.reasons.length === 0 ? "" : ` (${event.reasons.join(", ")})`
      return Effect.logInfo(`Binding is ${event.to}${reasons}, was ${event.from}`)
    }
    case "SessionCrashed": {
      // A broker that stays away, or refuses every session that starts, would say the same at every attempt.
      const key = `${event.binding}/${event.consumer}`
      if (event.attempt > 1 && lastCrash.get(key) === event.error.message) return undefined
      lastCrash.set(key, event.error.message)
      return Effect.logError(`Consumer cannot run and is started again until it can: ${event.error.message}`)
    }
    case "EventLoopBlocked":
      return Effect.logError(
        `The event loop was blocked for ${event.blockedMillis} ms, and no heartbeat could be sent; after ${event.sessionTimeoutMillis} ms the group gives the partitions away. Move long computations off this thread, or yield in between`
      )
    case "TopicUnavailable":
      return Effect.logError(`Nothing can be read yet: ${event.error.message}`)
    case "ConsumersIdle":
      return Effect.logWarning(
        `concurrency is ${event.concurrency}, but topic '${event.topic}' has ${event.partitions} partitions: the rest stays idle`
      )
    case "PartitionAssigned":
      return Effect.logInfo(`Partition assigned, reading from ${event.position}`)
    case "PartitionReleased":
      return Effect.logInfo(`Partition revoked, committed ${event.committed}`)
    case "PartitionLost":
      return Effect.logWarning("Partition lost to the group: work in progress was cut off, nothing committed")
    case "RecordsGone": {
      const count = event.gone === undefined ? "an unknown number of" : String(event.gone)
      return Effect.logError(
        `${count} records were never read (${event.cause}): offset ${event.from} is gone, going on at ${event.to}`
      )
    }
    case "Settled":
      if (event.settlement === "Handled" || event.settlement === "Unfinished") return undefined
      return Effect.logWarning(
        `Record ${settlements[event.settlement]} after ${event.attempts} attempts: ${event.failure?.className ?? ""} ${event.failure?.message ?? ""}`
      )
    case "DeadLetterFailed":
      if (event.attempt !== 1) return undefined
      return Effect.logError(`Cannot publish to '${event.topic}', the record waits: ${event.error.message}`)
    case "TransactionFailed":
      return Effect.logWarning(`A transaction failed and is started anew: ${event.error.message}`)
    case "CommitFailed":
      if (event.attempt !== 1 || event.error.retryable) return undefined
      return Effect.logError(`Cannot commit, records will be delivered again: ${event.error.message}`)
    case "ProcessingBudgetReached":
      return Effect.logWarning("Handling took more than 70 % of maxPollInterval and was cut short")
    case "DrainTimedOut":
      return Effect.logWarning(
        `${event.unfinished} records were still being handled at the end of the drain; they will be delivered again`
      )
    default:
      return undefined
  }
}

const settlements = { DeadLettered: "dead-lettered", Skipped: "skipped", Halted: "halted its partition" } as const

const annotations = (event: EventBusEvent): Record<string, unknown> => ({
  bindingName: event.binding,
  ...("consumer" in event ? { consumer: event.consumer } : {}),
  ...("topic" in event && "partition" in event ? { topic: event.topic, partition: event.partition } : {}),
  ...("record" in event ? { offset: event.record.offset } : {})
})
