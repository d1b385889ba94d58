/**
 * Processes of a benchmark: `childProcess.ts` is started with the names of a benchmark and a role, told its place, and answers with samples.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, Schema, type Scope } from "effect"
import { type Helper, Place, ProcessFailed, Samples } from "./Benchmark.ts"

/** What a process is told. */
export const Order = Schema.Union([Schema.TaggedStruct("Begin", { place: Place }), Schema.TaggedStruct("Stop", {})])
export type Order = typeof Order.Type

/** What a process answers. */
export const Answer = Schema.Union([
  Schema.TaggedStruct("Measured", { samples: Samples }),
  Schema.TaggedStruct("Failed", { detail: Schema.String })
])
export type Answer = typeof Answer.Type

const decodeAnswer = Schema.decodeUnknownSync(Answer)
const entry = fileURLToPath(new URL("./childProcess.ts", import.meta.url))

/** Starts a process; it is killed when the scope closes. `profileFolder` gets a CPU profile of it. */
export const start = (
  benchmark: string,
  role: string,
  place: Place,
  profileFolder: string | undefined
): Effect.Effect<Helper, never, Scope.Scope> =>
  Effect.gen(function* () {
    const profiling = profileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`]
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        fork(entry, [benchmark, role], {
          // What a participant writes must not get between the lines of `--json`.
          stdio: ["ignore", process.stderr, process.stderr, "ipc"],
          execArgv: ["--no-warnings", ...profiling]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const samples = yield* Deferred.make<Samples, ProcessFailed>()
    const name = `${benchmark} ${role}`
    listen(child, (answer) => {
      const outcome =
        answer._tag === "Measured"
          ? Effect.succeed(answer.samples)
          : Effect.fail(new ProcessFailed({ process: name, detail: answer.detail }))
      Deferred.doneUnsafe(samples, outcome)
    })
    const tell = (order: Order) => child.connected && child.send(order)
    tell({ _tag: "Begin", place })
    return { stop: Effect.sync(() => void tell({ _tag: "Stop" })), samples: Deferred.await(samples) }
  })

/** The process's answer, once it has ended: its own, or that it died without one. */
const listen = (child: ChildProcess, done: (answer: Answer) => void): void => {
  let answer: Answer | undefined
  child.on("message", (message) => {
    answer = decodeAnswer(message)
  })
  child.on("error", (error) => done({ _tag: "Failed", detail: error.message }))
  child.on("exit", (code, signal) => done(answer ?? { _tag: "Failed", detail: `ended with ${signal ?? code}` }))
}
