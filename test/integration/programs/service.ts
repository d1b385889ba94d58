/** One of two services as a process of its own. Each call is a line of its ledger before the handler ends, so a process that dies by kill -9 has written every call. */
import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding } from "@eventbus/core"
import { Layer } from "effect"
import * as Transport from "../../transport.ts"
import { binding, type Task } from "../twoServices.ts"

const task: Task = JSON.parse(process.env["TASK"] ?? "{}")
const ledger = openSync(task.ledger, "a")

NodeRuntime.runMain(
  Layer.launch(
    Binding.layer(
      binding(task.service, task.topic, (call) => void writeSync(ledger, `${JSON.stringify(call)}\n`))
    ).pipe(Layer.provide(Transport.layer({ brokers: task.brokers })))
  )
)
