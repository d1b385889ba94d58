/** OPS-18 on a real Kafka: idempotency keys hold across processes, and when a process is killed (kill -9) with a claim of its own. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Program from "./program.ts"

const token = "the-token-of-the-operator"
const timeoutMillis = 180_000

interface Answer {
  readonly status: number
  readonly isAgain: boolean
  readonly text: string
}

/** A process with an admin API. */
const processOn = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string) {
  const program = yield* Program.launch(Program.pathOf("operated.ts"), JSON.stringify({ brokers, topic, token }))
  yield* Bus.until(
    "the process listens",
    Effect.sync(() => program.output().includes("port")),
    { within: "60 seconds" }
  )
  const { port } = JSON.parse(program.output().split("\n")[0]!)
  const call = (method: string, path: string, key?: string): Effect.Effect<Answer> =>
    Effect.promise(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/eventbus/bindings/orders${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(key === undefined ? {} : { "idempotency-key": key }) }
      })
      const isAgain = response.headers.has("idempotency-replayed")
      return { status: response.status, isAgain, text: await response.text() }
    })
  return { ...program, call }
})

KafkaSuite.shared("idempotency keys", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OPS-18 a repeat gets the first answer from another process, and after kill -9; work with an unknown end is not done again",
    () =>
      Effect.gen(function* () {
        const topic = Bus.fresh("keys")
        for (const name of [topic, `${topic}.DLT`]) yield* Bus.createTopic(name, 1)
        yield* Bus.publish([1, 2, 3].map((key) => ({ topic, key: Bus.bytes(String(key)), value: Bus.bytes("bad") })))
        const first = yield* processOn(bootstrap, topic)
        const isDead = Effect.map(first.call("GET", "/dlt/stats"), ({ text }) => JSON.parse(text).count === 3)
        yield* Bus.until("three letters", isDead, { within: "60 seconds" })
        const replayed = yield* first.call("POST", "/dlt/replay?count=1", "replay-1")
        assert.deepStrictEqual([replayed.status, JSON.parse(replayed.text).replayed], [200, 1])
        const end = Effect.map(Bus.logEnds(topic), (ends) => ends.get(0))
        // Three records, the copy, and the end of its transaction, which Kafka writes a moment after the answer.
        const isWhole = Effect.map(end, (offset) => offset === 5n)
        yield* Bus.until("the copy is committed", isWhole, { within: "60 seconds" })

        const second = yield* processOn(bootstrap, topic)
        const elsewhere = yield* second.call("POST", "/dlt/replay?count=1", "replay-1")
        assert.deepStrictEqual(elsewhere, { status: 200, isAgain: true, text: replayed.text })
        assert.strictEqual((yield* second.call("POST", "/dlt/replay?count=2", "replay-1")).status, 422)

        // Whichever process has the partition waits for its handler.
        yield* Bus.publish([{ topic, key: Bus.bytes("4"), value: Bus.bytes("slow") }])
        yield* Effect.sleep("3 seconds")
        const stopping = [first, second].map(({ call }, index) =>
          Effect.ignore(Effect.timeout(Effect.exit(call("POST", "/stop", `stop-${index}`)), "3 seconds"))
        )
        yield* Effect.all(stopping, { concurrency: 2 })
        for (const each of [first, second]) yield* each.end("SIGKILL")

        const third = yield* processOn(bootstrap, topic)
        const again = yield* third.call("POST", "/dlt/replay?count=1", "replay-1")
        assert.deepStrictEqual(again, { status: 200, isAgain: true, text: replayed.text })
        const unknown = yield* Effect.forEach([0, 1], (index) => third.call("POST", "/stop", `stop-${index}`))
        const refused = unknown.filter(({ status }) => status === 409).map(({ text }) => JSON.parse(text))
        assert.deepStrictEqual(
          refused.map(({ _tag }) => _tag),
          ["IdempotentRequestUnfinished"]
        )
        assert.include([first.pid, second.pid], refused[0].pid)
        assert.strictEqual(JSON.parse((yield* third.call("GET", "")).text).state, "RUNNING")
        assert.strictEqual(yield* end, 6n)
      }),
    timeoutMillis
  )
})
