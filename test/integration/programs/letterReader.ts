/** A process of an operator that groups, lists and rehearses the dead letters of a topic, and writes how long each took as one line of JSON. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, Broker, Serde } from "@eventbus/core"
import { Effect, Layer, Logger } from "effect"
import * as Transport from "../../transport.ts"

const task: { readonly brokers: ReadonlyArray<string>; readonly topic: string } = JSON.parse(
  process.env["TASK"] ?? "{}"
)

const binding = Binding.rehearsable(
  Binding.make("letters", {
    ...{ topic: task.topic, groupId: task.topic, value: Serde.string },
    handler: () => Effect.void
  }),
  Layer.empty
)

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const from = performance.now()
    const before = process.cpuUsage()
    return Effect.map(effect, (found) => {
      const { user, system } = process.cpuUsage(before)
      return [found, { millis: performance.now() - from, cpu: (user + system) / 1_000 }] as const
    })
  })

/** Reads all dead letters, and does nothing with them. */
const readOnly = Effect.gen(function* () {
  const broker = yield* Broker.Broker
  const topic = `${task.topic}.DLT`
  const logs = yield* (yield* broker.admin).topicOffsets(topic)
  const { read } = yield* broker.reader()
  for (const { partition, logStart, logEnd } of logs) {
    for (let offset = logStart; offset < logEnd; ) {
      const found = yield* read({ topic, partition, offset })
      if (found._tag !== "Fetched") return yield* Effect.die(new Error(found._tag))
      offset = found.chunk.nextOffset
    }
  }
}).pipe(Effect.scoped)

const pages = 20

const program = Effect.gen(function* () {
  const letters = yield* Binding.deadLetters(binding)
  const [grouped, groups] = yield* timed(letters.groups())
  const pageCosts: Array<{ readonly millis: number; readonly cpu: number }> = []
  const shown = new Set<string>()
  let replayed = 0
  let before: string | undefined
  for (let index = 0; index < pages; index++) {
    const [page, cost] = yield* timed(letters.letters(before === undefined ? {} : { before }))
    pageCosts.push(cost)
    for (const { partition, offset, history } of page.letters) {
      shown.add(`${partition}@${offset}`)
      if (history.length > 0) replayed++
    }
    before = page.next
    if (before === undefined) break
  }
  yield* readOnly
  const [, read] = yield* timed(readOnly)
  const [report, rehearsal] = yield* timed(letters.rehearse({ all: true }))
  const counted = grouped.groups.reduce((sum, { states }) => sum + states.waiting + states["dealt-with"], 0)
  const told = {
    ...{ found: grouped.groups.length, counted, shown: shown.size, replayed, selected: report.selected },
    ...{ passes: report.passes, groups, pages: pageCosts, read, rehearsal },
    megabytes: Math.round(process.resourceUsage().maxRSS / 1_000)
  }
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(told)}\n`))
})

const Main = Transport.layer({ brokers: task.brokers }).pipe(Layer.provideMerge(Logger.layer([])))

NodeRuntime.runMain(Effect.provide(program, Main))
