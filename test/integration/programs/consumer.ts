/**
 * A consumer in its own process, which a test kills or stops. It writes each step as one line in its journal before it goes on: a process
 * that dies by kill -9 has written every step that it took.
 */
import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector, Fleet, RetryPolicy, Serde } from "@eventbus/core"
import { Effect, Layer } from "effect"
import * as Transport from "../../transport.ts"
import { decodeTask, type Entry } from "../journal.ts"

const task = decodeTask(process.env.TASK)
const file = openSync(task.journal, "a")
const write = (entry: Entry): void => void writeSync(file, `${JSON.stringify(entry)}\n`)

const blockEventLoop = (millis: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis)

let blocked = false
const blockOnce = (): void => {
  if (!blocked) blockEventLoop(task.blockMillis)
  blocked = true
}

const binding = Binding.make(task.name, {
  topic: task.topic,
  groupId: task.groupId,
  value: Serde.string,
  ...Transport.membership(task.settings),
  retry: RetryPolicy.blocking(),
  handler: ({ record: { partition, offset }, value }) => {
    const of = { partition, offset: Number(offset), value }
    const done = Effect.sync(() => write({ _tag: "Done", ...of }))
    write({ _tag: "Started", ...of })
    if (value === task.blocksAt) blockOnce()
    if (value === task.failsAt) return Effect.die("no")
    return task.handlerMillis === 0 ? done : Effect.andThen(Effect.sleep(task.handlerMillis), done)
  }
})

const events = Layer.effectDiscard(
  Effect.flatMap(EventBusConnector.EventBusConnector, ({ subscribe }) =>
    subscribe((event) => {
      switch (event._tag) {
        case "PartitionAssigned":
        case "PartitionReleased":
        case "PartitionLost":
          return write({ _tag: event._tag, partition: event.partition })
      }
    })
  )
)

const connector = events.pipe(Layer.provideMerge(Binding.layer(binding)))
const service = task.fleet === undefined ? connector : connector.pipe(Layer.provide(Fleet.layer(task.fleet)))

NodeRuntime.runMain(Layer.launch(service.pipe(Layer.provide(Transport.layer({ brokers: task.brokers })))))
