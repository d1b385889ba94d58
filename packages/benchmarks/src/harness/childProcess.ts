/** The process side of `processes.ts`. */
import { Cause, Deferred, Effect, References, Schema, Scope } from "effect"
import { benchmarks } from "../benchmarks.ts"
import type { ProcessInput } from "./Benchmark.ts"
import { type Answer, Order, start } from "./processes.ts"

const [benchmarkName = "", roleName = ""] = process.argv.slice(2)
const decodeOrder = Schema.decodeUnknownSync(Order)
const stopped = Deferred.makeUnsafe<void>()

const answer = (value: Answer): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(value, () => resolve())
  })

const run = (input: ProcessInput) =>
  Effect.gen(function* () {
    const benchmark = yield* Effect.promise(benchmarks[benchmarkName] ?? (() => Promise.reject(benchmarkName)))
    const role = benchmark.role(roleName)
    if (role === undefined) return yield* Effect.die(`no process is called ${roleName}`)
    const scope = yield* Effect.scope
    return yield* role({
      ...input,
      stopped: Deferred.await(stopped),
      begin: () => void answer({ _tag: "Begun" }),
      start: (helper) => Effect.provideService(start(benchmarkName, helper, input, undefined), Scope.Scope, scope)
    })
  }).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "Warn"),
    Effect.match({
      onSuccess: (samples): Answer => ({ _tag: "Measured", samples }),
      onFailure: (error): Answer => ({ _tag: "Failed", detail: String(error) })
    }),
    Effect.catchCause((cause) => Effect.succeed<Answer>({ _tag: "Failed", detail: Cause.pretty(cause) }))
  )

process.on("message", (message) => {
  const order = decodeOrder(message)
  if (order._tag === "Stop") Deferred.doneUnsafe(stopped, Effect.void)
  else
    Effect.runPromise(run(order.input))
      .then(answer)
      .then(() => process.exit())
})
// The parent process has ended, so nobody reads the answer.
process.on("disconnect", () => process.exit(1))
