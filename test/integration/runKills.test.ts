/**
 * Processes that work on the run of a plan (an applier, a console) are killed (kill -9) at random points, and others resume it; the broker is killed and started again while they
 * work. A reader of committed records sees each copy once, and the receipt says what lies in the logs.
 *
 * `RUN_KILLS` and `RUN_LETTERS` set how many kills there are, of a run of how many letters: 4 of 600 by default, since whoever takes over waits for a lease to end.
 */
import { assert } from "@effect/vitest"
import { Binding, type ConsumerRecord, RetryPolicy, Route, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect, Random } from "effect"
import * as Bus from "./bus.ts"
import type * as Program from "./program.ts"
import { startApplier, startConsole, type Verb, type Worker } from "./runWorkers.ts"

const kills = Number(process.env["RUN_KILLS"] ?? 4)
const letters = Number(process.env["RUN_LETTERS"] ?? 600)
const partitions = 2
/** A process that takes over waits for the lease of a killed one (15 seconds), and for its open transaction. */
const timeoutMillis = 180_000 + kills * 60_000

class Down extends Data.TaggedError("Down") {}

/** One of 20 fails again after its copy. */
const failsAgain = (value: string) => Number(value) % 20 === 0

const setUp = Effect.fnUntraced(function* (bootstrap: ReadonlyArray<string>) {
  const topic = Bus.fresh("runs")
  for (const name of [topic, `${topic}.DLT`]) yield* Bus.createTopic(name, partitions)
  yield* Bus.publish(Bus.numbered(`${topic}.DLT`, partitions, letters))
  const { connector } = yield* Bus.start(
    Binding.make("runner", {
      ...{ topic, groupId: topic, value: Serde.string },
      retry: RetryPolicy.blocking({ maxAttempts: 1 }),
      handler: ({ value }) => (failsAgain(value) ? Effect.fail(new Down()) : Effect.void),
      onError: { Down: Route.retry }
    })
  )
  const runs = yield* Effect.orDie(connector.runs("runner"))
  const start = (id: string, verb: Verb) =>
    Effect.map(startApplier(bootstrap, topic, id, verb), ({ program }) => program)
  const ends = Effect.map(Bus.logEnds(topic), (found) => [...found.values()].reduce((sum, end) => sum + Number(end), 0))
  return { topic, runs, start, ends }
})

const ended = (program: Program.Program) =>
  Effect.map(
    program.exit,
    () => JSON.parse(program.output().trim()) as { readonly state?: string; readonly _tag?: string }
  )

/** The letters that carry the id of a run, by the text in their header. */
const marked = (records: ReadonlyArray<ConsumerRecord.ConsumerRecord>, id: string) =>
  records.flatMap(({ headers, value }) => {
    const mark = Bus.text(headers.find(({ key }) => key === "x-eventbus-run-id")?.value) ?? ""
    return mark.startsWith(`${id}/`) ? [{ letter: mark.slice(id.length + 1), value: Bus.text(value) ?? "" }] : []
  })

const distinct = (texts: ReadonlyArray<string>) => new Set(texts).size

type SetUp = Effect.Success<ReturnType<typeof setUp>>

/** Kills whoever works on the run, and the broker while they do, until there were so many kills or the run is over. Answers the kills of each kind. */
const killAll = Effect.fnUntraced(function* (cluster: RealKafka.Cluster, { runs, topic, ends }: SetUp, id: string) {
  const killed = { applier: 0, console: 0, broker: 0 }
  const count = () => killed.applier + killed.console + killed.broker
  const goesOn = (worker: Worker, from: number) =>
    Bus.until(
      "the run goes on",
      Effect.map(ends, (now) => now > from || worker.hasSpoken()),
      { within: "90 seconds", otherwise: worker.program.output }
    ).pipe(Effect.andThen(Effect.flatMap(Random.nextIntBetween(0, 1_500), Effect.sleep)))
  const summary = Effect.map(runs.list, (all) => all.find((run) => run.id === id))
  for (let life = 0; count() < kills; life++) {
    const found = yield* summary
    if (found?.state === "done") break
    const before = yield* ends
    const start = life % 2 === 0 ? startApplier : startConsole
    const worker = yield* start(cluster.bootstrap, topic, id, found === undefined ? "apply" : "resume")
    // Some die at any point of their beginning, and most while they publish.
    if ((yield* Random.nextIntBetween(0, 4)) === 0) yield* Effect.sleep(yield* Random.nextIntBetween(100, 3_000))
    else {
      yield* goesOn(worker, before)
      yield* cluster.kill(1)
      killed.broker++
      yield* cluster.restart(1)
      yield* goesOn(worker, yield* ends)
    }
    const { signal } = yield* worker.program.end("SIGKILL")
    if (signal === "SIGKILL") killed[worker.kind]++
  }
  return { ...killed, all: count(), state: (yield* summary)?.state }
})

/** The receipt, after the logs were found to have each copy once. */
const checked = Effect.fnUntraced(function* ({ runs, topic }: SetUp, id: string) {
  yield* Bus.lagIsZero(topic, topic, "90 seconds")
  const copies = marked(yield* Bus.readAll(topic), id)
  assert.strictEqual(copies.length, letters)
  assert.strictEqual(distinct(copies.map(({ letter }) => letter)), letters)
  assert.strictEqual(distinct(copies.map(({ value }) => value)), letters)
  const back = marked(yield* Bus.readAll(`${topic}.DLT`), id)
  const cameBack = distinct(back.map(({ letter }) => letter))
  assert.strictEqual(cameBack, copies.filter(({ value }) => failsAgain(value)).length)
  const receipt = yield* runs.receipt(id)
  assert.deepInclude(receipt, {
    ...{ state: "done", dealtWith: copies.length, refused: 0, cameBack, passed: copies.length - cameBack },
    ...{ waiting: 0, elsewhere: 0, closed: true }
  })
  assert.deepStrictEqual({ ...(yield* runs.receipt(id)) }, { ...receipt })
})

KafkaSuite.own("runs whose processes and whose broker are killed with -9", {}, (it) => {
  it.effect(
    `OPS-08 OPS-09 ${kills} kills of a run of ${letters} letters: each copy is there once, and the receipt is what the logs say`,
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const given = yield* setUp(cluster.bootstrap)
          const { runs, start } = given
          // A batch of 20 letters a second leaves many points to be killed at.
          const plan = yield* runs.plan({
            ...{ action: "replay", select: { all: true }, reason: "kill test", rate: 20, canary: 10, stopAbove: 100 },
            canaryWait: "2 seconds"
          })
          assert.strictEqual(plan.count, letters)
          const killed = yield* killAll(cluster, given, plan.id)
          if (process.env["RUN_KILLS"] !== undefined) console.log(killed)
          if (killed.state !== "done") {
            if (killed.state !== undefined) yield* runs.setRate(plan.id, 100_000)
            const last = yield* start(plan.id, killed.state === undefined ? "apply" : "resume")
            assert.deepInclude(yield* ended(last), { state: "done" })
          }
          assert.isAtLeast(killed.all, Math.ceil(kills / 2), "the run was over too early")
          yield* checked(given, plan.id)
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    timeoutMillis
  )
})

KafkaSuite.shared("a plan that two processes apply", (bootstrap) => {
  Bus.story(bootstrap, "OPS-08 two processes apply one plan at once: one does, the other says who did", () =>
    Effect.gen(function* () {
      const { topic, runs, start } = yield* setUp(bootstrap)
      const plan = yield* runs.plan({
        ...{ action: "replay", select: { all: true }, reason: "twice", rate: 100_000, canary: 0, stopAbove: 100 }
      })
      const programs = [yield* start(plan.id, "apply"), yield* start(plan.id, "apply")]
      const told = yield* Effect.forEach(programs, ended)
      assert.deepStrictEqual(told.map(({ state, _tag }) => state ?? _tag).sort(), ["PlanApplied", "done"])
      const copies = marked(yield* Bus.readAll(topic), plan.id)
      assert.strictEqual(copies.length, letters)
      assert.strictEqual(distinct(copies.map(({ letter }) => letter)), letters)
    })
  )
})
