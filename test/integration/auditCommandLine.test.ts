/** The command line straight on a real Kafka, audited as its file says. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { eventbus, folderWith, program, start } from "../../packages/cli/test/eventbus.ts"
import * as Bus from "./bus.ts"

KafkaSuite.shared("the audit log on the command line", (bootstrap) => {
  const why = ["--reason", "INC-1204"]

  /** A binding with two dead letters that nothing else is known of. */
  const prepared = Effect.fnUntraced(function* (name: string, audit: string) {
    const topic = Bus.fresh(name)
    yield* Bus.createTopic(topic)
    yield* Bus.createTopic(`${topic}.DLT`)
    yield* Bus.publish([{ topic: `${topic}.DLT`, partition: 0, key: Bus.bytes("s3cr3t"), value: Bus.bytes("s3cr3t") }])
    const folder = yield* folderWith({
      "app.yaml": `eventbus:
  clusters:
    default: { brokers: [${bootstrap.map((each) => `"${each}"`).join(", ")}] }
  audit: ${audit}
  bindings:
    orders: { topic: ${topic}, group-id: ${topic}, handler: charge }
`
    })
    const run = (command: string, ...rest: ReadonlyArray<string>) =>
      eventbus(folder, "dlt", command, "app.yaml", "orders", ...rest)
    return { folder, run, audit: (...rest: ReadonlyArray<string>) => eventbus(folder, "audit", "app.yaml", ...rest) }
  })

  Bus.story(
    bootstrap,
    "OPS-22 OPS-25 every command that changes or shows something is in the topic, without payload",
    () =>
      Effect.gen(function* () {
        const log = Bus.fresh("audit")
        const { run, audit } = yield* prepared("cli-audit", `{ topic: ${log} }`)
        assert.strictEqual((yield* run("show", "0@0")).code, 0)
        const made = yield* run("plan", "--key", "s3cr3t", "--action", "discard", ...why, "--json")
        const { id } = JSON.parse(made.out)
        yield* run("apply", id)
        yield* run("purge", "--older-than", "7d")
        const { entries } = JSON.parse((yield* audit("--json")).out)
        assert.deepStrictEqual(
          entries.map((entry: Record<string, unknown>) => [
            entry["action"],
            entry["outcome"],
            entry["from"],
            entry["run"]
          ]),
          [
            ["purge", "done", "command-line", undefined],
            ["applyPlan", "done", "command-line", id],
            ["plan", "done", "command-line", id],
            ["makePlan", "done", "command-line", id],
            ["record", "done", "command-line", undefined]
          ]
        )
        const [, , , plan] = entries
        assert.deepInclude(plan, { binding: "default:orders", reason: "INC-1204", permissions: ["discard"] })
        assert.deepStrictEqual(plan.target, { action: "discard", keyCount: 1 })
        assert.match(plan.by, /^.+@.+$/)
        for (const { value } of yield* Bus.readAll(log)) assert.notInclude(new TextDecoder().decode(value!), "s3cr3t")
      })
  )

  Bus.story(bootstrap, "OPS-25 a process of `eventbus run --http` audits as its file says", () =>
    Effect.gen(function* () {
      const log = Bus.fresh("audit-run")
      const { folder, audit } = yield* prepared("cli-run", `{ topic: ${log} }`)
      const running = start(folder, "run", "app.yaml", "--handlers", program("handlers"), "--http", "0")
      yield* Effect.addFinalizer(() => Effect.sync(() => running.process.kill("SIGKILL")))
      const address = () => /Admin API listens on http:\/\/\S*:(\d+)/.exec(running.out())?.[1]
      yield* Bus.until("it listens", () => address() !== undefined, { otherwise: running.out })
      const pause = Effect.promise(() =>
        fetch(`http://127.0.0.1:${address()}/eventbus/bindings/orders/pause?reason=x`, { method: "POST" })
      )
      yield* Bus.until(
        "the API answers",
        Effect.map(pause, ({ status }) => status === 403),
        { otherwise: running.out }
      )
      const { entries } = JSON.parse((yield* audit("--json")).out)
      const { by, action, outcome, error, from } = entries[0]
      assert.deepStrictEqual(
        [by, action, outcome, error, from],
        ["this machine", "pause", "refused", "ReadOnly", "http"]
      )
    })
  )

  Bus.story(
    bootstrap,
    "OPS-25 an audit topic that takes no entry keeps a plan from being made, and a letter from being shown",
    () =>
      Effect.gen(function* () {
        const log = Bus.fresh("audit-stuck")
        // No entry is so small.
        yield* Bus.createTopic(log, 1, { "max.message.bytes": "1" })
        const { run } = yield* prepared("cli-refused", `{ topic: ${log}, timeout: 2s }`)
        const began = Date.now()
        const refused = yield* run("plan", "--all", ...why)
        assert.deepStrictEqual([refused.code, refused.out], [3, ""])
        assert.match(refused.err, /^The audit log, topic '\S+', cannot be written, so nothing was done/m)
        assert.isBelow(Date.now() - began, 15_000)
        const hidden = yield* run("show", "0@0")
        assert.deepStrictEqual([hidden.code, hidden.out], [3, ""])
      })
  )
})
