/** The kinds of the options of a cluster in memory: a misspelt one must not let a test pass on another cluster than it says. */
import { Kinds, Ranges } from "@eventbus/core"
import type { Operation } from "../../FaultPlan.ts"

const count: Ranges.Range = { minimum: 1, maximum: 2_147_483_647, kind: "whole" }
const duration: Ranges.Range = { minimum: 0, maximum: 2_147_483_647, kind: "duration" }

const operations: Readonly<Record<Operation, Ranges.Range>> = {
  join: duration,
  heartbeat: duration,
  fetch: duration,
  commit: duration,
  produce: duration,
  sendOffsets: duration,
  endTransaction: duration,
  admin: duration
}

const latency: Kinds.Kind = (path, found) => {
  const known = Kinds.struct(operations)(path, found)
  return known.length > 0
    ? known
    : Object.keys(found as object)
        .filter((name) => !(name in operations))
        .map((name) => ({ path: `${path}.${name}`, found: name, allowed: Object.keys(operations).join(", ") }))
}

/** Of `MemoryBroker.Options`. */
export const ofCluster: Kinds.Kind = Kinds.struct({
  ...{ defaultPartitions: count, brokerCount: count, maxRecordsPerChunk: count, maxMessageBytes: count },
  ...{ autoCreateTopics: Kinds.oneOf(["off", "on"]), assignment: Kinds.oneOf(["cooperative-sticky", "eager"]) },
  ...{ requestTimeout: duration, latency, onEvent: Kinds.func },
  faults: Kinds.struct(
    {},
    {
      seed: Kinds.make("a finite number", Number.isFinite),
      faults: Kinds.listOf(Kinds.object, "a list of faults")
    }
  )
})

/** Of `TestBus.Options`, with those of `live`. */
export const ofBus: Kinds.Kind = Kinds.struct({
  partitions: count,
  topics: Kinds.recordOf((path, found) => Ranges.problems(path, found, count)),
  seed: Kinds.make("a finite number", Number.isFinite),
  settleWithin: duration,
  broker: ofCluster
})
