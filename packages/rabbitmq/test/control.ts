/** `rabbitmqctl`, where the tests may use it: on RabbitMQ's own machine, as a user that it accepts. */
import { execFile, spawnSync } from "node:child_process"
import { promisify } from "node:util"
import { Effect } from "effect"

const run = promisify(execFile)

/** Whether tests may run commands: not on a server that the environment names. */
export const hasControl =
  process.env["RABBITMQ_TEST"] === undefined && spawnSync("rabbitmqctl", ["-q", "eval", "1."]).status === 0

if (!hasControl) console.warn("rabbitmqctl cannot be used: tests that set an alarm or a policy are skipped")

/** Runs a command. */
export const control = (...command: ReadonlyArray<string>): Effect.Effect<string> =>
  Effect.promise(async () => (await run("rabbitmqctl", ["-q", ...command])).stdout)

const watermark = "set_vm_memory_high_watermark"

/** RabbitMQ has too little memory, for as long as the scope is open: it reads no longer from connections that publish. */
export const memoryAlarm = Effect.gen(function* () {
  const before = (yield* control("eval", "vm_memory_monitor:get_vm_memory_high_watermark().")).trim()
  yield* Effect.acquireRelease(control(watermark, "0.000001"), () => control(watermark, before))
})

/** A queue refuses messages from the first one on, for as long as the scope is open. */
export const alwaysFull = (queue: string) =>
  Effect.acquireRelease(
    control("set_policy", queue, `^${queue}$`, '{"max-length":1,"overflow":"reject-publish"}', "--apply-to", "queues"),
    () => control("clear_policy", queue)
  )
