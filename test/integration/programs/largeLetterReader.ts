/**
 * A process of an operator that looks at large dead letters in each way that shows no value: groups, figures, pages, a plan and a rehearsal. It keeps all answers, and writes as one
 * line of JSON what it found, how many bytes of buffers are left once nothing else is, the most that were held at once, and how long each took.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding } from "@eventbus/core"
import { Effect, Layer, Logger, Schedule } from "effect"
import * as Transport from "../../transport.ts"

const task: { readonly brokers: ReadonlyArray<string>; readonly topic: string } = JSON.parse(
  process.env["TASK"] ?? "{}"
)

const binding = Binding.rehearsable(
  Binding.make("letters", { topic: task.topic, groupId: task.topic, handler: () => Effect.void }),
  Layer.empty
)

const mebibyte = 1024 * 1024

/** Bytes of all buffers, in MiB. */
const buffers = (): number => Math.round(process.memoryUsage().arrayBuffers / mebibyte)

let most = 0
/** Counts what is held, and not what the collector has left lying: on a busy machine it comes late. */
const watched = Effect.repeat(
  Effect.sync(() => {
    globalThis.gc?.()
    most = Math.max(most, buffers())
  }),
  Schedule.spaced("50 millis")
)

const collected = Effect.sync(() => {
  globalThis.gc?.()
  return buffers()
}).pipe(Effect.delay("50 millis"), Effect.repeat({ times: 3 }))

const program = Effect.gen(function* () {
  yield* Effect.forkScoped(watched)
  const letters = yield* Binding.deadLetters(binding)
  const runs = yield* Binding.runs(binding)
  const millis: Record<string, number> = {}
  const timed = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const from = performance.now()
      const answer = yield* effect
      millis[name] = Math.round(performance.now() - from)
      return answer
    })
  const grouped = yield* timed("groups", letters.groups())
  const figures = yield* timed("stats", letters.stats)
  const first = yield* timed("page", letters.letters({ limit: 20 }))
  const pages = [first]
  for (let before = first.next; before !== undefined; ) {
    const page = yield* letters.letters({ before })
    pages.push(page)
    before = page.next
  }
  const plan = yield* timed("plan", runs.plan({ action: "replay", select: { all: true }, reason: "figures" }))
  const report = yield* timed("rehearsal", letters.rehearse({ all: true }))
  const left = yield* collected
  const shown = pages.flatMap((page) => page.letters)
  return {
    counts: {
      ...{ grouped: grouped.groups.reduce((sum, { count }) => sum + count, 0), counted: figures.count },
      ...{ first: first.letters.length, shown: shown.length, planned: plan.count, passes: report.passes },
      valueBytes: Math.min(...shown.map(({ valueBytes = 0 }) => valueBytes))
    },
    ...{ left, most, millis, resident: Math.round(process.resourceUsage().maxRSS / 1_024) }
  }
}).pipe(
  Effect.scoped,
  Effect.flatMap((told) => Effect.sync(() => process.stdout.write(`${JSON.stringify(told)}\n`)))
)

const Main = Transport.layer({ brokers: task.brokers }).pipe(Layer.provideMerge(Logger.layer([])))

NodeRuntime.runMain(Effect.provide(program, Main))
