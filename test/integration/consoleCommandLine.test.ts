/** OPS-22: `eventbus console` on a real Kafka, while no process of the service answers: dead letters are dealt with, and nothing is run. */
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { folderWith, ordersFile, program, start } from "../../packages/cli/test/eventbus.ts"
import { storeDead, storeIn } from "../../packages/cli/test/outboxFile.ts"
import * as Bus from "./bus.ts"

KafkaSuite.shared("the console on a cluster", (bootstrap) => {
  const withTopic = Effect.fnUntraced(function* (name: string) {
    const topic = Bus.fresh(name)
    const folder = yield* folderWith({ "app.yaml": ordersFile(bootstrap, topic) })
    yield* Bus.createTopic(topic, 1)
    return { topic, folder }
  })

  /** The command as a process, and its page. */
  const opened = Effect.fnUntraced(function* (folder: string, ...flags: ReadonlyArray<string>) {
    const running = start(folder, "console", "app.yaml", "--json", ...flags)
    yield* Effect.addFinalizer(() => Effect.sync(() => running.process.kill("SIGKILL")))
    yield* Bus.until("the address is printed", () => running.out().endsWith("}\n"))
    const printed: { readonly url: string; readonly write: boolean } = JSON.parse(running.out())
    const { origin, hash } = new URL(printed.url)
    const bearer = hash.replace("#token=", "")
    const call = (method: string, path: string, body?: object, token = bearer) =>
      Effect.promise(async () => {
        const response = await fetch(`${origin}${path}`, {
          method,
          headers: {
            ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
            ...(body === undefined ? {} : { "content-type": "application/json" })
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
        const text = await response.text()
        return {
          status: response.status,
          text,
          body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text
        }
      })
    return { running, printed, call }
  })

  const groupOf = (groupId: string) =>
    Effect.scoped(Broker.Broker.use((broker) => Effect.flatMap(broker.admin, (admin) => admin.describeGroup(groupId))))

  const orders = "/eventbus/bindings/orders"

  Bus.story(
    bootstrap,
    "OPS-22 looks and hides payloads by default; joins no group, commits nothing, and ends with Ctrl-C",
    () =>
      Effect.gen(function* () {
        const { topic, folder } = yield* withTopic("console-look")
        yield* Bus.publish(
          [1, 2, 3].map((cents) => ({ topic, partition: 0, key: null, value: Bus.bytes(`{"cents":${cents}}`) }))
        )
        const { running, printed, call } = yield* opened(folder)
        assert.match(printed.url, /^http:\/\/127\.0\.0\.1:\d+\/eventbus\/console$/)
        assert.match((yield* call("GET", "/eventbus/console")).text, /<title>Event bus<\/title>/)
        assert.deepStrictEqual((yield* call("GET", "/health/live")).body, { status: "UP" })
        assert.deepStrictEqual((yield* call("GET", "/health/ready")).body, { status: "UP" })
        const [seen] = (yield* call("GET", "/eventbus/bindings")).body
        assert.deepInclude(seen, { state: "CREATED", lag: 3, deadLetters: 0 })
        assert.strictEqual(seen.outside.members, 0)
        assert.deepInclude((yield* call("GET", "/eventbus/health")).body, { status: "UP", outside: true })
        assert.deepInclude((yield* call("POST", `${orders}/start`)).body, { _tag: "ReadOnly" })
        running.process.kill("SIGINT")
        const { code, err } = yield* Effect.promise(() => running.ended)
        assert.strictEqual(code, 130)
        assert.match(err, /looks from outside, straight on Kafka, and runs no bindings\. It changes nothing/)
        assert.deepInclude(yield* groupOf(topic), { state: "Dead", members: [] })
        assert.strictEqual((yield* Bus.committed(topic, topic)).size, 0)
      })
  )

  Bus.story(bootstrap, "OPS-12 OPS-22 with --outbox the page has the dead events of an outbox, and replays one", () =>
    Effect.gen(function* () {
      const { folder } = yield* withTopic("console-outbox")
      const filename = join(folder, "outbox.db")
      yield* Effect.provide(storeDead(["Refused: order 17 is closed"]), storeIn(filename))
      const opening = Effect.acquireUseRelease(
        Effect.sync(() => Object.assign(process.env, { OUTBOX_FILE: filename })),
        () => opened(folder, "--write", "--outbox", program("outbox")),
        () => Effect.sync(() => delete process.env["OUTBOX_FILE"])
      )
      const { call } = yield* opening
      const { groups } = (yield* call("GET", "/eventbus/outbox/dead/groups")).body
      assert.deepStrictEqual(
        groups.map(({ count, errorClass }: { count: number; errorClass: string }) => [count, errorClass]),
        [[1, "Refused"]]
      )
      const replay = yield* call("POST", "/eventbus/outbox/dead/events/e-0/replay?reason=INC-1204")
      assert.strictEqual(replay.status, 200, replay.text)
      assert.deepStrictEqual((yield* call("GET", "/eventbus/outbox/dead/groups")).body.groups, [])
    })
  )

  Bus.story(
    bootstrap,
    "OPS-22 with --write a plan over dead letters is applied; Start is refused with one sentence; the next process gets the copies",
    () =>
      Effect.gen(function* () {
        const { topic, folder } = yield* withTopic("console-write")
        yield* Bus.publish([{ topic, partition: 0, key: null, value: Bus.bytes('{"cents":2000}') }])
        const handlers = ["--handlers", program("handlers")]
        const service = start(folder, "run", "app.yaml", ...handlers)
        yield* Effect.addFinalizer(() => Effect.sync(() => service.process.kill("SIGKILL")))
        const letters = Effect.map(
          Effect.orElseSucceed(Bus.readAll(`${topic}.DLT`), () => []),
          ({ length }) => length
        )
        yield* Bus.until(
          "the order is a dead letter",
          Effect.map(letters, (count) => count === 1),
          { otherwise: service.out }
        )
        service.process.kill("SIGTERM")
        yield* Effect.promise(() => service.ended)
        const committed = yield* Bus.committed(topic, topic)
        assert.strictEqual(committed.get(0), 1n)

        const { running, printed, call } = yield* opened(folder, "--write")
        assert.isTrue(printed.write)
        assert.strictEqual((yield* call("GET", "/eventbus/bindings", undefined, "")).status, 401)
        const refused = yield* call("POST", `${orders}/start`)
        assert.strictEqual(refused.status, 409)
        assert.strictEqual(
          refused.body.message,
          "This console runs no bindings, so it cannot start 'default:orders': use the fleet, or the process that runs it."
        )
        const { letters: listed } = (yield* call("GET", `${orders}/dlt/records`)).body
        assert.strictEqual(listed.length, 1)
        const plan = yield* call("POST", `${orders}/dlt/plans`, {
          ...{ action: "replay", select: { all: true }, reason: "INC-1204" }
        })
        assert.deepStrictEqual([plan.status, plan.body.count], [201, 1], plan.text)
        assert.match(plan.body.by, /^.+@.+$/)
        assert.strictEqual((yield* call("POST", `${orders}/dlt/plans/${plan.body.id}/apply`)).status, 202)
        const run = call("GET", `${orders}/dlt/runs/${plan.body.id}`)
        yield* Bus.until(
          "the run is done",
          Effect.map(run, ({ body }) => body.state === "done")
        )
        assert.deepInclude((yield* run).body, { waiting: 1, passed: 0 })
        assert.strictEqual((yield* Bus.readAll(topic)).length, 2)
        // Nobody has taken the copy: no member, and the group is where it was.
        assert.deepInclude(yield* groupOf(topic), { members: [] })
        assert.deepStrictEqual(yield* Bus.committed(topic, topic), committed)
        assert.strictEqual(yield* letters, 1)
        running.process.kill("SIGTERM")
        assert.strictEqual((yield* Effect.promise(() => running.ended)).code, 130)

        const next = start(folder, "run", "app.yaml", ...handlers)
        yield* Effect.addFinalizer(() => Effect.sync(() => next.process.kill("SIGKILL")))
        yield* Bus.until(
          "the copy has come back",
          Effect.map(letters, (count) => count === 2),
          { otherwise: next.out }
        )
      })
  )
})
