/** The least ACLs of a fleet: a process that has them works, and cannot hold or command; a viewer that has them sees, and cannot either. */
import { assert } from "@effect/vitest"
import { Binding, Fleet, RetryPolicy, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer, Redacted } from "effect"
import { grant } from "./acls.ts"
import * as Bus from "./bus.ts"

KafkaSuite.own("a fleet on a cluster that grants little", { security: "sasl_ssl", acls: true }, (it) => {
  const as = <A, E, R>(who: "admin" | "app", effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(RealKafka.RealKafka, ({ bootstrap, ca, users }) => {
      const { username, password } = users[who]
      const sasl = { mechanism: "plain" as const, username, password: Redacted.make(password) }
      return Bus.on({ brokers: bootstrap, ...(ca === undefined ? {} : { ssl: { ca } }), sasl }, effect)
    })

  it.effect(
    "OPS-13 OPS-14 a process with its ACLs is held, obeys and is seen, and Kafka refuses a hold or a command that it forges",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const name = Bus.fresh("fleet")
        const topics = { controlTopic: `${name}.control`, fleetTopic: `${name}.fleet` }
        const layer = Layer.build(Fleet.layer(topics))
        const operator = yield* as(
          "admin",
          Effect.map(layer, (context) => Context.get(context, Fleet.Fleet))
        )
        yield* operator.createTopics
        yield* as("admin", Bus.createTopic(name))
        yield* as("admin", Bus.publish(Bus.numbered(name, 1, 1)))
        const target = { binding: name, groupId: name }
        yield* operator.hold({ ...target, reason: "test" })
        yield* grant(
          cluster,
          { resource: "GROUP", name, operation: "READ" },
          { resource: "TOPIC", name, operation: "READ" },
          { resource: "TOPIC", name: `${name}.DLT`, operation: "WRITE" },
          { resource: "TOPIC", name: topics.controlTopic, operation: "READ" },
          { resource: "TOPIC", name: topics.fleetTopic, operation: "READ" },
          { resource: "TOPIC", name: topics.fleetTopic, operation: "WRITE" }
        )
        const handled: Array<string> = []
        const binding = Binding.make(name, {
          ...{ topic: name, groupId: name, value: Serde.string, retry: RetryPolicy.blocking() },
          handler: ({ value }) => Effect.sync(() => void handled.push(value))
        })
        const context = yield* as("app", layer)
        const app = yield* as("app", Effect.provideContext(Bus.start(binding), context))
        yield* Bus.until("it is seen under the hold", seen(operator, "fleet"), { otherwise: () => app.log })
        const { answers, missing } = yield* operator.command({ verb: "pause", binding: name, reason: "test" })
        assert.deepStrictEqual([answers.map(({ state }) => state), missing], [["done"], []])

        yield* grant(
          cluster,
          { resource: "TOPIC", name: topics.controlTopic, operation: "DESCRIBE_CONFIGS" },
          { resource: "TOPIC", name: topics.fleetTopic, operation: "DESCRIBE_CONFIGS" }
        )
        const forger = Context.get(context, Fleet.Fleet)
        assert.strictEqual((yield* forger.view).processes.length, 1)
        const denied = { _tag: "AuthorizationFailed", resource: "topic", name: topics.controlTopic } as const
        assert.deepInclude(yield* Effect.flip(forger.hold({ ...target, reason: "forged" })), denied)
        assert.deepInclude(yield* Effect.flip(forger.release({ ...target, reason: "the bank is back" })), denied)
        assert.deepInclude(yield* Effect.flip(forger.command({ verb: "resume", reason: "forged" })), denied)
        assert.deepStrictEqual(handled, [])
        assert.deepStrictEqual(
          app.log.filter(({ level, message }) => level !== "Info" && message.includes(`${name}.control`)),
          []
        )
      }),
    60_000
  )
})

const seen = (operator: Fleet.Fleet["Service"], pausedBy: string) =>
  Effect.map(operator.view, ({ processes }) =>
    processes.some(({ control, bindings }) => control === "known" && bindings[0]?.pausedBy.join() === pausedBy)
  )
