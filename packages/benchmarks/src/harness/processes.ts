/**
 * The processes of a benchmark: starts `childProcess.ts` with the names of a benchmark and a role, sends it its input, and receives samples.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, Schema, type Scope } from "effect"
import { type Helper, ProcessFailed, ProcessInput, Samples } from "./Benchmark.ts"

/** A message to a process. */
export const Order = Schema.Union([
  Schema.TaggedStruct("Begin", { input: ProcessInput }),
  Schema.TaggedStruct("Stop", {})
])
export type Order = typeof Order.Type

/** A message from a process: that it has begun (at most once, and only from some processes), or how it ended. */
export const Answer = Schema.Union([
  Schema.TaggedStruct("Begun", {}),
  Schema.TaggedStruct("Measured", { samples: Samples }),
  Schema.TaggedStruct("Failed", { detail: Schema.String })
])
export type Answer = typeof Answer.Type

const decodeAnswer = Schema.decodeUnknownSync(Answer)
const entry = fileURLToPath(new URL("./childProcess.ts", import.meta.url))

/** Starts a process, which is killed when the scope closes. `profileFolder` receives its CPU profile. */
export const start = (
  benchmark: string,
  role: string,
  input: ProcessInput,
  profileFolder: string | undefined
): Effect.Effect<Helper, never, Scope.Scope> =>
  Effect.gen(function* () {
    const profiling = profileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`]
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        fork(entry, [benchmark, role], {
          // The output of a participant must not get between the lines of `--json`.
          stdio: ["ignore", process.stderr, process.stderr, "ipc"],
          execArgv: ["--no-warnings", ...profiling]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const begun = yield* Deferred.make<void, ProcessFailed>()
    const samples = yield* Deferred.make<Samples, ProcessFailed>()
    listen(child, (answer) => {
      if (answer._tag === "Begun") return Deferred.doneUnsafe(begun, Effect.void)
      const failed = (detail: string) => Effect.fail(new ProcessFailed({ process: `${benchmark} ${role}`, detail }))
      Deferred.doneUnsafe(begun, failed("has ended"))
      Deferred.doneUnsafe(samples, answer._tag === "Measured" ? Effect.succeed(answer.samples) : failed(answer.detail))
    })
    const tell = (order: Order) => child.connected && child.send(order)
    tell({ _tag: "Begin", input })
    return {
      begun: Deferred.await(begun),
      stop: Effect.sync(() => void tell({ _tag: "Stop" })),
      samples: Deferred.await(samples)
    }
  })

/** Receives the answers of a process. Its last answer counts when the process has ended; without one, the exit code does. */
const listen = (child: ChildProcess, hear: (answer: Answer) => void): void => {
  let last: Answer | undefined
  child.on("message", (message) => {
    const answer = decodeAnswer(message)
    if (answer._tag === "Begun") hear(answer)
    else last = answer
  })
  child.on("error", (error) => hear({ _tag: "Failed", detail: error.message }))
  child.on("exit", (code, signal) => hear(last ?? { _tag: "Failed", detail: `ended with ${signal ?? code}` }))
}
