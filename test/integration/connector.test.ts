/** The connector on a real Kafka: what it says of lag and health is so, a cluster that is away leaves the other alone, and bindings that go leave nothing. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert } from "@effect/vitest"
import { Binding, Broker, Clusters, EventBusConnector, RetryPolicy, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"

KafkaSuite.shared("connector", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OBS-11 MUL-06 LIF-19 lag of a paused binding is seen, an idle one is UP, and a cluster that is away concerns its own bindings only",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("seen")
        yield* Bus.createTopic(name, 2)
        const make = (cluster: string) =>
          Binding.make(name, {
            topic: name,
            groupId: name,
            cluster,
            value: Serde.string,
            retry: RetryPolicy.blocking(),
            handler: () => Effect.void
          })
        const context = yield* Layer.build(
          EventBusConnector.layer.pipe(
            Layer.provideMerge(
              Clusters.layer({
                default: Transport.layer({ brokers: bootstrap }),
                west: Transport.layer({ brokers: ["127.0.0.1:1"] })
              })
            )
          )
        )
        const { register, pause, resume, snapshot, health, destroy } = Context.get(
          context,
          EventBusConnector.EventBusConnector
        )
        const here = `default:${name}`
        const lag = Effect.map(snapshot(here), ({ partitions }) => partitions.reduce((sum, at) => sum + at.lag, 0n))
        yield* Effect.provideContext(register(make("default")), context)
        yield* Bus.until(
          "both assigned",
          Effect.map(snapshot(here), ({ partitions }) => partitions.length === 2)
        )
        yield* pause(here)
        const producer = yield* (yield* Broker.Broker).producer()
        yield* producer.sendAll(Bus.numbered(name, 2, 6, 0))
        yield* Bus.until(
          "lag of 6",
          Effect.map(lag, (records) => records === 6n)
        )
        yield* resume(here)
        yield* Bus.until(
          "no lag",
          Effect.map(lag, (records) => records === 0n)
        )
        yield* Effect.provideContext(register(make("west")), context)
        yield* Bus.until(
          "a reason",
          Effect.map(health, ({ status }) => status === "DOWN")
        )
        const { live, reasons } = yield* health
        assert.isTrue(live)
        assert.deepStrictEqual(
          reasons.map((reason) => (reason._tag === "ClusterUnreachable" ? reason.cluster : reason._tag)),
          ["west"]
        )
        yield* destroy(`west:${name}`)
        // Long enough for several health checks: an idle topic is not a failure.
        yield* Effect.sleep("35 seconds")
        assert.deepStrictEqual(yield* health, { status: "UP", live: true, ready: true, reasons: [] })
      }),
    Bus.waiting
  )

  Bus.story(
    bootstrap,
    "LIF-16 twenty rounds of register and destroy: no growth in fibers, timers, sockets, series",
    () =>
      Effect.promise(async () => {
        const program = fileURLToPath(new URL("../scenarios/programs/churn.ts", import.meta.url))
        const { stdout, stderr } = await promisify(execFile)(
          process.execPath,
          ["--no-warnings", "--expose-gc", program, "20"],
          { maxBuffer: 1e8, env: { ...process.env, KAFKA_BROKERS: bootstrap.join(",") } }
        )
        const lines = stdout.split("\n").filter((line) => line.startsWith('{"fibers"'))
        assert.strictEqual(lines.length, 2, stderr)
        const [early, late] = lines.map((line) => ({ ...JSON.parse(line), heapBytes: 0 }))
        assert.deepStrictEqual(late, early)
      }),
    Bus.waiting
  )
})
