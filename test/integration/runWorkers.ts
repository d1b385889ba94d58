/** Processes that work on the run of a plan: one that applies it by itself, and a console that is told to over HTTP. */
import { setTimeout } from "node:timers/promises"
import { Effect, type Scope } from "effect"
import * as Bus from "./bus.ts"
import * as Program from "./program.ts"

export type Kind = "applier" | "console"
export type Verb = "apply" | "resume"

export interface Worker {
  readonly kind: Kind
  readonly program: Program.Program
  /** The program, or the console's answer, has said something about the run. */
  readonly hasSpoken: () => boolean
}

const token = "the-token-of-the-operator"
const listening = /Admin API listens on http:\/\/\S*:(\d+)/

export const startApplier = (
  brokers: ReadonlyArray<string>,
  topic: string,
  id: string,
  verb: Verb
): Effect.Effect<Worker, never, Scope.Scope> =>
  Effect.map(
    Program.launch(Program.pathOf("runner.ts"), JSON.stringify({ brokers, topic, id, verb })),
    (program): Worker => ({ kind: "applier", program, hasSpoken: () => program.output() !== "" })
  )

/** Does not wait for the answer. A resumption is asked for again until the lease of a process that was killed has ended. */
export const startConsole = Effect.fnUntraced(function* (
  brokers: ReadonlyArray<string>,
  topic: string,
  id: string,
  verb: Verb
): Effect.fn.Return<Worker, never, Scope.Scope> {
  const program = yield* Program.launch(Program.pathOf("console.ts"), JSON.stringify({ brokers, topic, token }))
  yield* Bus.until("the console listens", () => listening.test(program.output()), { otherwise: program.output })
  const [, port] = listening.exec(program.output())!
  const path = verb === "apply" ? `plans/${id}/apply` : `runs/${id}/resume`
  let answer = ""
  const call = Effect.promise(async () => {
    try {
      const headers = { authorization: `Bearer ${token}` }
      const url = `http://127.0.0.1:${port}/eventbus/bindings/runner/dlt/${path}`
      const ask = async () => (await fetch(url, { method: "POST", headers })).text()
      let text = await ask()
      while (text.includes("RunAtWork")) {
        await setTimeout(500)
        text = await ask()
      }
      answer = text
    } catch (error) {
      // The console was killed before it answered.
      answer = String(error)
    }
  })
  yield* Effect.forkScoped(call)
  return { kind: "console", program, hasSpoken: () => answer !== "" }
})
