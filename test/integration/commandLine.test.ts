/** `eventbus plan`, `run`, `trail` and `dlt` on a real Kafka: a file, a module with handlers, and a process that a signal ends. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { eventbus, folderWith, program, start } from "../../packages/cli/test/eventbus.ts"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"

KafkaSuite.shared("the command line", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OPS-03 OPS-05 what is missing is named; records run through handlers of a module; a trail tells their way; a dead letter is found and rehearsed",
    () =>
      Effect.gen(function* () {
        const topic = Bus.fresh("command-line")
        const folder = yield* folderWith({
          "app.yaml": `eventbus:
  clusters:
    default: { brokers: [${bootstrap.map((each) => `"${each}"`).join(", ")}], transport: ${Transport.name} }
  bindings:
    orders:
      topic: ${topic}
      group-id: ${topic}
      handler: charge
      concurrency: 4
      retry: { tier0: { maxAttempts: 1 }, tiers: [{ delay: 200ms, max-attempts: 1 }] }
`
        })
        const missing = yield* eventbus(folder, "plan", "app.yaml", "--check")
        assert.strictEqual(missing.code, 1)
        assert.include(missing.out, `error  Topic '${topic}' does not exist.`)

        yield* Bus.createTopic(topic, 3)
        const planned = yield* eventbus(folder, "plan", "app.yaml", "--check")
        assert.strictEqual(planned.code, 0)
        assert.include(
          planned.out,
          `info     The connector will create topic '${topic}.retry-1' with 3 partitions, replication 1.`
        )
        assert.include(planned.out, "concurrency is 4")

        yield* Bus.publish([
          { topic, partition: 1, key: Bus.bytes("o-1"), value: Bus.bytes('{"cents":20}') },
          { topic, partition: 1, key: Bus.bytes("o-2"), value: Bus.bytes('{"cents":2000}') }
        ])
        const args = ["--handlers", program("handlers"), "--log", "json", "--http", "0"]
        const running = start(folder, "run", "app.yaml", ...args)
        yield* Effect.addFinalizer(() => Effect.sync(() => running.process.kill("SIGKILL")))
        yield* Bus.until("the first order is charged", () => running.out().includes("charged 20"), {
          otherwise: running.out
        })
        yield* Bus.lagIsZero(topic, topic)
        yield* Bus.lagIsZero(topic, `${topic}.retry-1`)
        yield* Bus.until(
          "the second order is a dead letter",
          Effect.map(Bus.readAll(`${topic}.DLT`), (letters) => letters.length === 1).pipe(
            Effect.orElseSucceed(() => false)
          )
        )
        const port = /Admin API listens on http:[^"]*:(\d+)/.exec(running.out())![1]
        const get = (path: string) =>
          Effect.promise(async () => (await fetch(`http://127.0.0.1:${port}${path}`)).text())
        yield* Bus.until(
          "the process is ready",
          Effect.map(get("/health/ready"), (status) => status === '{"status":"UP"}')
        )
        const { count, byExceptionClass } = JSON.parse(yield* get("/eventbus/bindings/orders/dlt/stats"))
        assert.deepStrictEqual([count, byExceptionClass], [1, [{ name: "TooMuch", count: 1 }]])
        const { metrics } = JSON.parse(yield* get("/eventbus/bindings/orders"))
        assert.deepStrictEqual([metrics.processed, metrics.deadLettered], [1, 1])
        assert.match(yield* get("/metrics"), /^eventbus_records_dlq_total\{.*reason="RETRIES_EXHAUSTED".*\} 1$/m)
        running.process.kill("SIGTERM")
        const { code, err } = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([code, err], [130, ""])
        const lines = running.out().trimEnd().split("\n")
        const log = lines.filter((line) => line !== "charged 20").map((line) => JSON.parse(line))
        assert.strictEqual(log.length, lines.length - 1)
        assert.isTrue(log.some(({ level, offset }) => level === "WARN" && offset === 0))
        assert.strictEqual((yield* Bus.committed(topic, topic)).get(1), 2n)

        const told = yield* eventbus(folder, "trail", "app.yaml", "orders", "--key", "o-2")
        assert.strictEqual(told.code, 0)
        const [main, retry, letter, ...more] = told.out.trimEnd().split("\n")
        assert.deepStrictEqual(more, [])
        assert.match(main!, new RegExp(`^main +${topic}-1@1 .* done$`))
        assert.match(retry!, /^retry-1 .*attempt 1, after TooMuch, done$/)
        assert.match(letter!, /^DLT .*RETRIES_EXHAUSTED after 2 attempts, TooMuch/)
        const byPlace = yield* eventbus(folder, "trail", "app.yaml", "orders", "--at", "1@0", "--json")
        assert.deepStrictEqual(
          JSON.parse(byPlace.out).hops.map((hop: { readonly kind: string; readonly offset: string }) => [
            hop.kind,
            hop.offset
          ]),
          [["main", "0"]]
        )
        const nothing = yield* eventbus(folder, "trail", "app.yaml", "orders", "--key", "o-3")
        assert.deepStrictEqual([nothing.code, nothing.out], [1, ""])

        const dlt = (command: string, ...rest: ReadonlyArray<string>) =>
          eventbus(folder, "dlt", command, "app.yaml", "orders", ...rest)
        const groups = yield* dlt("groups")
        assert.strictEqual(groups.code, 0)
        assert.match(groups.out, /^1 group, 1 dead letter to deal with\nv1-\w+ {2}1 to deal with .* TooMuch /)
        const listed = JSON.parse((yield* dlt("list", "--json", "--text", "O-2")).out)
        const { position } = listed.letters[0]
        const shown = yield* dlt("show", position, "--handlers", program("handlers"), "--json")
        assert.deepStrictEqual(JSON.parse(shown.out).payload.value, {
          ...{ bytes: 14, text: '{"cents":2000}' },
          decoded: { cents: 2_000 }
        })
        assert.include((yield* dlt("show", position)).out, "came from")
        const absent = yield* dlt("show", "0@99")
        assert.deepStrictEqual([absent.code, absent.out], [1, ""])
        const rehearsed = yield* dlt("rehearse", "--handlers", program("handlers"), "--all", "--json")
        assert.strictEqual(rehearsed.code, 0)
        const { mode, selected, passes } = JSON.parse(rehearsed.out)
        assert.deepStrictEqual([mode, selected, passes], ["handler", 1, 1])
        assert.include(rehearsed.err, "charged 2000")
        const decoded = yield* dlt("rehearse", "--all")
        assert.strictEqual(decoded.code, 0)
        assert.include(decoded.out, "no handler was called")
      })
  )
})
