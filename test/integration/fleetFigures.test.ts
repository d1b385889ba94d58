/**
 * The figures of a fleet of real processes: how soon all have answered a command, and that nothing is handled under a hold while processes are killed with -9 and started again.
 *
 * `FLEET_PROCESSES` and `FLEET_COMMANDS` set the size of the first, `HOLD_SECONDS` how long the hold of the second lasts: small by default, since 20 processes take minutes on a
 * machine with two cores. With `FLEET_COMMANDS` set, the figures are printed and held to their bounds.
 */
import { loadavg } from "node:os"
import { assert } from "@effect/vitest"
import { Fleet } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer, Random } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const processes = Number(process.env["FLEET_PROCESSES"] ?? 3)
const commands = Number(process.env["FLEET_COMMANDS"] ?? 10)
const holdSeconds = Number(process.env["HOLD_SECONDS"] ?? 15)
const isMeasured = process.env["FLEET_COMMANDS"] !== undefined

/** Processes that run at once under the hold. */
const held = 4

/** An operator, and what starts a process of the fleet with one binding. */
const setUp = Effect.fnUntraced(function* (
  bootstrap: ReadonlyArray<string>,
  partitions: number,
  settings: Journal.Task["settings"] = {}
) {
  const name = Bus.fresh("fleet")
  const topics = { controlTopic: `${name}.control`, fleetTopic: `${name}.fleet` }
  const fleet = Context.get(yield* Layer.build(Fleet.layer(topics)), Fleet.Fleet)
  const journal = yield* Journal.make
  yield* fleet.createTopics
  yield* Bus.createTopic(name, partitions)
  const launch = Program.run("consumer.ts", {
    brokers: bootstrap,
    journal: journal.path,
    ...{ name, topic: name, groupId: name, handlerMillis: 0, blockMillis: 0, fleet: topics },
    settings
  })
  /** The processes among these that the fleet sees, each with a binding in this state. */
  const seen = (programs: ReadonlyArray<Program.Program>, state: string) =>
    Effect.map(fleet.view, (view) =>
      view.processes.filter(
        ({ pid, bindings }) => programs.some((each) => each.pid === pid) && bindings[0]?.state === state
      )
    )
  const areSeen = (programs: ReadonlyArray<Program.Program>, state: string) =>
    Effect.map(seen(programs, state), ({ length }) => length === programs.length)
  return { name, fleet, journal, launch, areSeen }
})

const quantile = (values: ReadonlyArray<number>, part: number): number =>
  [...values].sort((one, other) => one - other)[Math.ceil(values.length * part) - 1] ?? Number.NaN

KafkaSuite.shared("the figures of a fleet", (bootstrap) => {
  Bus.story(
    bootstrap,
    `OPS-14 all of ${processes} processes answer each of ${commands} commands, and those that are killed are named`,
    () =>
      Effect.gen(function* () {
        const { name, fleet, launch, areSeen } = yield* setUp(bootstrap, processes)
        const programs = yield* Effect.forEach(Array.from({ length: processes }), () => launch)
        const pids = (given: ReadonlyArray<{ readonly pid: number | undefined }>) => given.map(({ pid }) => pid).sort()
        yield* Bus.until("all processes run", areSeen(programs, "RUNNING"), {
          within: "3 minutes",
          otherwise: () => programs.map((program) => program.output().slice(-300))
        })
        const millis: Array<number> = []
        for (let index = 0; index < commands; index++) {
          const verb = index % 2 === 0 ? "pause" : "resume"
          const from = performance.now()
          const { answers, missing } = yield* fleet.command({ verb, binding: name, reason: "figures" })
          millis.push(performance.now() - from)
          assert.deepStrictEqual(missing, [])
          assert.deepStrictEqual(
            answers.map(({ state }) => state),
            programs.map(() => "done")
          )
        }
        const figures = { p50: quantile(millis, 0.5), p99: quantile(millis, 0.99), most: quantile(millis, 1) }
        if (isMeasured) {
          console.log({ processes, commands, ...figures, load: loadavg() })
          assert.isBelow(figures.p99, 500)
        }
        const dead = programs.slice(0, Math.ceil(processes / 5))
        for (const program of dead) yield* program.end("SIGKILL")
        const last = yield* fleet.command({ verb: "pause", binding: name, reason: "figures", wait: "3 seconds" })
        assert.deepStrictEqual(pids(last.missing), pids(dead))
        assert.strictEqual(last.answers.length, processes - dead.length)
      }),
    300_000 + commands * 10_000
  )

  Bus.story(
    bootstrap,
    `OPS-13 nothing is handled under a hold of ${holdSeconds} seconds while processes are killed and started again`,
    () =>
      Effect.gen(function* () {
        const { name, fleet, journal, launch, areSeen } = yield* setUp(bootstrap, held, {
          sessionTimeout: 6_000,
          heartbeatInterval: 500
        })
        const target = { binding: name, groupId: name }
        yield* fleet.hold({ ...target, reason: "the bank is down" })
        const programs = yield* Effect.forEach(Array.from({ length: held }), () => launch)
        const end = performance.now() + holdSeconds * 1_000
        let published = 0
        let killed = 0
        while (performance.now() < end) {
          yield* Bus.publish(Bus.numbered(name, held, 20, published))
          published += 20
          // Some die while they start, others when they have joined the group and have partitions.
          yield* Effect.sleep(yield* Random.nextIntBetween(100, 4_000))
          const [victim] = programs.splice(yield* Random.nextIntBetween(0, programs.length - 1), 1)
          yield* victim!.end("SIGKILL")
          killed++
          programs.push(yield* launch)
          assert.deepStrictEqual(journal.started(), [])
        }
        const output = {
          within: "2 minutes",
          otherwise: () => programs.map((each) => each.output().slice(-300))
        } as const
        yield* Bus.until("all live processes are held", areSeen(programs, "PAUSED"), output)
        assert.deepStrictEqual(journal.started(), [])
        assert.isAbove(killed, 0)
        if (process.env["HOLD_SECONDS"] !== undefined)
          console.log({ holdSeconds, killed, published, handled: 0, load: loadavg() })
        // The same processes handle every record as soon as nobody holds them.
        assert.isTrue(yield* fleet.release({ ...target, reason: "over" }))
        yield* Bus.until("all records are handled", () => journal.done().length >= published, output)
      }),
    300_000 + holdSeconds * 1_000
  )
})
