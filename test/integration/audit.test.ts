/** OPS-25 the audit log on a real Kafka with ACLs: who may write to it, who may read it, and what becomes of an operator whose entry Kafka refuses. */
import { assert } from "@effect/vitest"
import { Audit } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer, Redacted } from "effect"
import { grant } from "./acls.ts"
import * as Bus from "./bus.ts"

const pause: Parameters<Audit.Audit["Service"]["begin"]>[0] = {
  ...{ by: "ann", from: "http", permissions: ["operate"], action: "pause", binding: "default:orders" },
  ...{ target: { tier: 2 }, reason: "INC-1204" }
}

KafkaSuite.own("the audit log on a cluster that grants little", { security: "sasl_ssl", acls: true }, (it) => {
  const as = <A, E, R>(who: "admin" | "app", effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(RealKafka.RealKafka, ({ bootstrap, ca, users }) => {
      const { username, password } = users[who]
      const sasl = { mechanism: "plain" as const, username, password: Redacted.make(password) }
      return Bus.on({ brokers: bootstrap, ...(ca === undefined ? {} : { ssl: { ca } }), sasl }, effect)
    })
  const auditOf = (who: "admin" | "app", settings: Audit.Settings) =>
    as(
      who,
      Effect.map(Layer.build(Audit.layer(settings)), (context) => Context.get(context, Audit.Audit))
    )

  it.effect(
    "OPS-25 without a right nothing is done; with Write entries are written; with Read they are read, and Kafka gives the times",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const topic = Bus.fresh("audit")
        const owner = yield* auditOf("admin", { topic })
        yield* owner.createTopic
        yield* owner.createTopic
        const operator = yield* auditOf("app", { topic })
        let done = 0
        const act = operator.around(
          pause,
          Effect.sync(() => ++done)
        )

        const refused = yield* Effect.flip(act)
        assert.deepStrictEqual([refused._tag, refused.topic, done], ["AuditUnavailable", topic, 0])
        yield* grant(cluster, { resource: "TOPIC", name: topic, operation: "WRITE" })
        yield* Bus.until(
          "the ACL is known to all brokers",
          Effect.map(Effect.exit(act), (exit) => exit._tag === "Success")
        )
        assert.strictEqual(done, 1)
        assert.strictEqual((yield* Effect.flip(operator.page()))._tag, "AuthorizationFailed")

        const before = Date.now()
        const { entries, next } = yield* owner.page({ binding: "orders" })
        assert.strictEqual(next, undefined)
        const { id: _, atMillis, host, ...entry } = entries[0]!
        assert.isBelow(Math.abs(before - atMillis), 60_000)
        assert.isAbove(host.length, 0)
        assert.deepStrictEqual(entry, { ...pause, outcome: "done", repeats: 0 } as never)
        yield* grant(cluster, { resource: "TOPIC", name: topic, operation: "READ" })
        yield* Bus.until(
          "the viewer reads",
          Effect.map(Effect.exit(operator.page()), (exit) => exit._tag === "Success")
        )
      }),
    60_000
  )

  it.effect(
    "OPS-25 the topic is made by the first entry, and a hundred entries are read in pages without a repeat",
    () =>
      Effect.gen(function* () {
        const audit = yield* auditOf("admin", { topic: Bus.fresh("audit-pages") })
        assert.deepStrictEqual(yield* audit.page(), { entries: [], next: undefined })
        for (let index = 0; index < 100; index++) yield* audit.around({ ...pause, run: String(index) }, Effect.void)
        const seen: Array<string | undefined> = []
        let before: string | undefined
        do {
          const { entries, next } = yield* audit.page({ limit: 7, ...(before === undefined ? {} : { before }) })
          seen.push(...entries.map(({ run }) => run))
          before = next
        } while (before !== undefined)
        assert.deepStrictEqual(
          seen,
          Array.from({ length: 100 }, (_, index) => String(99 - index))
        )
      }),
    60_000
  )
})
