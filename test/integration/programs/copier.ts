/** A transactional consumer as a process of its own, to be killed: writes every value that it reads to `{topic}-copy`. */
import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, CurrentTransaction, Route, Serde } from "@eventbus/core"
import { Effect, Layer } from "effect"
import * as Transport from "../../transport.ts"
import { decodeTask, type Entry } from "../journal.ts"

const task = decodeTask(process.env.TASK)
const file = openSync(task.journal, "a")
const write = (entry: Entry): void => void writeSync(file, `${JSON.stringify(entry)}\n`)
const { sessionTimeout, heartbeatInterval } = task.settings

const copying = Binding.makeTransactional(task.name, {
  topic: task.topic,
  groupId: task.groupId,
  value: Serde.string,
  maxPollRecords: 20,
  ...Transport.membership({
    ...(sessionTimeout === undefined ? {} : { sessionTimeout }),
    ...(heartbeatInterval === undefined ? {} : { heartbeatInterval })
  }),
  handler: Effect.fnUntraced(function* ({ record, value }) {
    yield* CurrentTransaction.send({ topic: `${task.topic}-copy`, key: record.key, value: record.value })
    yield* Effect.sleep(task.handlerMillis)
    write({ _tag: "Done", partition: record.partition, offset: Number(record.offset), value })
  }),
  onError: () => Route.retry
})

NodeRuntime.runMain(
  Layer.launch(Binding.layer(copying).pipe(Layer.provide(Transport.layer({ brokers: task.brokers }))))
)
