/** `eventbus dlt plan|apply|run|discard|restore|runs|receipt|pause|resume|cancel|rate` on a real Kafka, beside a process that runs the binding. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { type Ended, eventbus, folderWith, ordersFile, program, start } from "../../packages/cli/test/eventbus.ts"
import * as Bus from "./bus.ts"

const json = ({ out }: Ended) => JSON.parse(out)
const why = ["--reason", "INC-1204"]
const handlers = ["--handlers", program("handlers")]

KafkaSuite.shared("plans and runs on the command line", (bootstrap) => {
  /** A process that runs the binding, and these orders as its dead letters. */
  const withLetters = Effect.fnUntraced(function* (name: string, cents: ReadonlyArray<number>) {
    const topic = Bus.fresh(name)
    const folder = yield* folderWith({ "app.yaml": ordersFile(bootstrap, topic) })
    yield* Bus.createTopic(topic, 1)
    yield* Bus.publish(
      cents.map((each) => ({ topic, partition: 0, key: Bus.bytes("o"), value: Bus.bytes(`{"cents":${each}}`) }))
    )
    const running = start(folder, "run", "app.yaml", ...handlers)
    yield* Effect.addFinalizer(() => Effect.sync(() => running.process.kill("SIGKILL")))
    const letters = Effect.orElseSucceed(Bus.readAll(`${topic}.DLT`), () => [])
    const lettersAre = (count: number) =>
      Bus.until(
        `${count} dead letters`,
        Effect.map(letters, ({ length }) => length === count),
        { otherwise: running.out }
      )
    yield* lettersAre(cents.length)
    const dlt = (command: string, ...rest: ReadonlyArray<string>) =>
      eventbus(folder, "dlt", command, "app.yaml", "orders", ...rest)
    const beside = (command: string, ...rest: ReadonlyArray<string>) =>
      start(folder, "dlt", command, "app.yaml", "orders", ...rest)
    const closed = (id: string) =>
      Effect.gen(function* () {
        yield* Bus.until(
          "the receipt is closed",
          Effect.map(dlt("receipt", id, "--json"), (ended) => json(ended).closed === true)
        )
        return json(yield* dlt("receipt", id, "--json"))
      })
    const planned = Effect.fnUntraced(function* (...rest: ReadonlyArray<string>) {
      const made = yield* dlt("plan", "--json", ...why, ...rest)
      assert.strictEqual(made.code, 0, made.err)
      return json(made)
    })
    return { topic, running, dlt, beside, closed, planned, lettersAre }
  })

  Bus.story(
    bootstrap,
    "OPS-07 OPS-09 OPS-22 a plan is applied once, a stale one never, and its receipt closes itself",
    () =>
      Effect.gen(function* () {
        const { topic, dlt, closed, planned, lettersAre } = yield* withLetters("cli-plan", [2_000, 3_000])
        const plan = yield* planned("--all")
        assert.deepInclude(plan, {
          action: "replay",
          count: 2,
          targets: [{ name: topic, count: 2 }],
          reason: "INC-1204"
        })
        const applied = yield* dlt("apply", plan.id)
        assert.strictEqual(applied.code, 0, applied.err)
        assert.match(applied.out, new RegExp(`^run ${plan.id}: replay is done\\n  2 of 2 dead letters dealt with`))
        const again = yield* dlt("apply", plan.id)
        assert.deepStrictEqual([again.code, again.out], [1, ""])
        assert.match(again.err, /was applied by process/)
        assert.deepInclude(yield* closed(plan.id), { state: "done", passed: 0, cameBack: 2, waiting: 0 })
        yield* lettersAre(4)

        const stale = yield* planned("--at", "0@2", "--at", "0@3")
        const discarded = yield* dlt("discard", "--at", "0@2", ...why)
        assert.strictEqual(discarded.code, 0)
        assert.match(discarded.err, /^plan .*: 1 dead letter would be given up/)
        const refused = yield* dlt("apply", stale.id)
        assert.deepStrictEqual([refused.code, refused.out], [1, ""])
        assert.match(refused.err, /^Nothing was done: since plan .* takes 1 letters instead of 2/)
        const restored = yield* dlt("restore", "--at", "0@2", ...why, "--json")
        assert.deepStrictEqual([restored.code, json(restored).dealtWith], [0, 1])
        const { code, out } = yield* dlt("runs", "--json")
        assert.deepStrictEqual(
          [code, JSON.parse(out).runs.map(({ action, state }: Record<string, string>) => [action, state])],
          [
            0,
            [
              ["restore", "done"],
              ["discard", "done"],
              ["replay", "done"]
            ]
          ]
        )
      })
  )

  Bus.story(
    bootstrap,
    "OPS-08 OPS-22 a run is paused, resumed, left by a signal, and cancelled from another process",
    () =>
      Effect.gen(function* () {
        const cents = Array.from({ length: 20 }, (_, index) => 2_000 + index)
        const { dlt, beside, planned } = yield* withLetters("cli-run", cents)
        const working = Effect.fnUntraced(function* (verb: string, id: string) {
          const process = beside(verb, id, "--json")
          yield* Bus.until(
            "the run works",
            Effect.map(dlt("runs", "--json"), (ended) =>
              json(ended).runs.some((run: Record<string, unknown>) => run["id"] === id && run["state"] === "running")
            )
          )
          return process
        })
        const { id } = yield* planned("--all", "--rate", "1", "--canary", "0", "--stop-above", "100")
        const first = yield* working("apply", id)
        const paused = yield* dlt("pause", id, "--reason", "the shop is full")
        assert.strictEqual(paused.code, 0)
        assert.include(paused.out, `run ${id}: replay is paused: the shop is full`)
        const ended = yield* Effect.promise(() => first.ended)
        assert.deepStrictEqual([ended.code, json(ended).state], [1, "paused"])
        const left = yield* working("resume", id)
        left.process.kill("SIGINT")
        assert.deepInclude(yield* Effect.promise(() => left.ended), { code: 130, out: "" })
        const abandoned = yield* dlt("receipt", id)
        assert.match(abandoned.out, /is running: no process works on it since \S+; resume it\n/)
        assert.include(abandoned.out, `go on with it: eventbus dlt resume app.yaml orders ${id}`)
        assert.match((yield* dlt("runs")).out, /running: no process works on it since \S+; resume it/)
        const second = beside("resume", id, "--json")
        yield* Bus.until(
          "another process works on the run",
          Effect.map(dlt("receipt", id, "--json"), (found) => json(found).pid === second.process.pid)
        )
        const faster = yield* dlt("rate", id, "2", "--json")
        assert.deepStrictEqual([faster.code, json(faster).rate], [0, 2])
        const cancelled = yield* dlt("cancel", id, "--reason", "wrong letters", "--json")
        assert.deepStrictEqual([cancelled.code, json(cancelled).state], [0, "cancelled"])
        const over = yield* Effect.promise(() => second.ended)
        assert.deepStrictEqual([over.code, json(over).state], [1, "cancelled"])
        const refused = yield* dlt("resume", id)
        assert.deepStrictEqual([refused.code, refused.err], [1, `Nothing was done: run ${id} is cancelled.\n`])
        const unknown = yield* dlt("receipt", "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20")
        assert.strictEqual(unknown.code, 1)
        assert.match(unknown.err, /^There is no run/)
      })
  )

  Bus.story(bootstrap, "OPS-06 OPS-22 a run with a transform repairs letters; exit code 4 when one of them stays", () =>
    Effect.gen(function* () {
      const { dlt, closed, running } = yield* withLetters("cli-transform", [2_000, 20_000])
      const without = yield* dlt("run", "--all", "--transform", "cap", ...why)
      assert.strictEqual(without.code, 2)
      assert.match(without.err, /^transform 'cap' is a function in the code of the binding: --handlers MODULE names/)
      const planned = yield* dlt("plan", "--all", "--transform", "cap", ...handlers, ...why, "--json")
      assert.deepStrictEqual(
        json(planned)
          .transformed.map(({ outcome }: { readonly outcome: string }) => outcome)
          .sort(),
        ["copied", "stays"]
      )
      const blind = yield* dlt("apply", json(planned).id)
      assert.strictEqual(blind.code, 2)
      assert.match(blind.err, /^transform 'cap' is a function in the code of the binding: --handlers MODULE names/)
      const partly = yield* dlt("run", "--all", "--transform", "cap", ...handlers, ...why, "--json")
      assert.strictEqual(partly.code, 4, partly.err)
      const { id, dealtWith, count, refusals } = json(partly)
      assert.deepStrictEqual([dealtWith, count], [1, 2])
      assert.deepStrictEqual(refusals, [{ name: "Transform 'cap' skips it: a large order", count: 1 }])
      assert.deepInclude(yield* closed(id), { passed: 1, cameBack: 0 })
      assert.include(running.out(), "charged 1000")
    })
  )
})
