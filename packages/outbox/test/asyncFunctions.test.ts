/** Ruling 86: functions without a result may be async functions. Their rejections are noted like throws, end nothing, and stop no delivery. */
import { assert, it } from "@effect/vitest"
import { MetricsExporter } from "@eventbus/outbox"
import { type Clock, Context } from "effect"
import { Guard } from "../src/internal/base/guard.ts"
import { Monitor } from "../src/internal/base/monitor.ts"
import { guardedExporter } from "../src/internal/delivery/guardedExporter.ts"

const rejecting = async (): Promise<void> => {
  throw new Error("statsd is away")
}
const clock = { currentTimeMillisUnsafe: () => 1 } as Clock.Clock

const macrotasks = async () => {
  for (let count = 0; count < 3; count++) await new Promise((resolve) => setImmediate(resolve))
}

/** The functions with problems, after calls whose rejections nobody else handles. */
const problemsAfter = async (calls: (guard: Guard) => void) => {
  const unhandled: Array<unknown> = []
  const onRejection = (error: unknown) => void unhandled.push(error)
  process.on("unhandledRejection", onRejection)
  const monitor = new Monitor()
  calls(new Guard(monitor, clock, Context.empty()))
  await macrotasks()
  process.off("unhandledRejection", onRejection)
  assert.deepStrictEqual(unhandled, [])
  return monitor.problems(1).map(({ name, lastError }) => [name, lastError])
}

it("ruling 86: each method of a metrics exporter may be an async function that rejects", async () => {
  const names = Object.keys(MetricsExporter.noop)
  const exporter = Object.fromEntries(names.map((name) => [name, rejecting]))
  const problems = await problemsAfter((guard) => {
    const guarded = guardedExporter(exporter as unknown as MetricsExporter.MetricsExporter, guard)
    for (const name of names) guarded[name as "recordOldestLagMs"](1)
  })
  assert.deepStrictEqual(
    problems.map(([name]) => name),
    names.map((name) => `metrics exporter's ${name}`)
  )
  for (const [, error] of problems) assert.strictEqual(error, "Error: statsd is away")
})

it("ruling 86: callbacks may be async functions that reject", async () => {
  const problems = await problemsAfter((guard) => guard.run("onReplayed", rejecting))
  assert.deepStrictEqual(problems, [["onReplayed", "Error: statsd is away"]])
})

it("ruling 86: a Promise in place of a value is the function's failure, and its rejection is handled", async () => {
  const answers: Array<unknown> = []
  const problems = await problemsAfter((guard) => {
    answers.push(guard.call<unknown>("retryPolicy", rejecting, Number.isFinite, 60_000))
    answers.push(guard.call<unknown>("poller handler", rejecting, (value) => typeof value === "boolean", "threw"))
  })
  assert.deepStrictEqual(answers, [60_000, "threw"])
  assert.deepStrictEqual(
    problems.map(([name]) => name),
    ["retryPolicy", "poller handler"]
  )
})
