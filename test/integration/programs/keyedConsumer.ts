/** A member of the group of the kill test of order per key. Each step of its handlers, and each partition that it gets, is a line of the file of effects before it goes on. */
import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector } from "@eventbus/core"
import { Effect, Layer } from "effect"
import * as Transport from "../../transport.ts"
import { type Line, partitionOf } from "../orderKills/effects.ts"
import * as KeyedBinding from "../orderKills/keyedBinding.ts"
import type { Task } from "../orderKills/keyedGroup.ts"

const { brokers, topic, effects }: Task = JSON.parse(process.env["TASK"] ?? "{}")
const file = openSync(effects, "a")
const write = (line: Line): void => void writeSync(file, `${JSON.stringify(line)}\n`)

/** By partition. */
const tenures = new Map<number, string>()
let assignments = 0

const binding = KeyedBinding.make(topic, (place) => tenures.get(partitionOf(place)) ?? `${process.pid}-none`, write)

const begin = Effect.gen(function* () {
  const connector = yield* EventBusConnector.EventBusConnector
  yield* connector.subscribe((event) => {
    if (event._tag !== "PartitionAssigned" || event.topic !== topic) return
    const tenure = `${process.pid}-${++assignments}`
    tenures.set(event.partition, tenure)
    write({ _tag: "Assigned", tenure, partition: event.partition })
  })
  yield* Effect.orDie(connector.start(topic))
})

NodeRuntime.runMain(
  Layer.launch(
    Layer.effectDiscard(begin).pipe(
      Layer.provideMerge(Binding.layer(binding)),
      Layer.provide(Transport.layer({ brokers }))
    )
  )
)
