/** JSON Schema and Protobuf with Java as the other side, both ways, by one registry on a port of this machine. */
import { create, toBinary } from "@bufbuild/protobuf"
import { assert, it } from "@effect/vitest"
import type { Serde } from "@eventbus/core"
import { JsonSchema } from "@eventbus/json-schema"
import { JavaClient } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Protobuf } from "@eventbus/protobuf"
import { SchemaRegistry } from "@eventbus/schema-registry"
import { Effect, Result, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { listening, makeState } from "../../schema-registry/test/registry.ts"
import { GiftSchema, OrderSchema, RefundSchema } from "./messages.ts"

class Order extends Schema.Class<Order>("Order")({ id: Schema.String, cents: Schema.Int }) {}

const hex = (bytes: Uint8Array | null) => Buffer.from(bytes ?? []).toString("hex")

const written = <A>(serde: Serde.Serde<A>, value: A) => hex(Result.getOrThrow(serde.encode(value)))

const read = <A>(serde: Serde.Serde<A>, text: string) => {
  const bytes = new Uint8Array(Buffer.from(text, "hex"))
  return Effect.map(serde.prepare?.(bytes) ?? Effect.void, () => Result.getOrThrow(serde.decode(bytes)))
}

/** Java's first run downloads its jars. */
const timeoutMillis = 180_000

KafkaSuite.withJava("JSON Schema and Protobuf of Java", () => {
  it.live(
    "RCH-10 Java reads what the serdes write, and the serdes read what Java writes",
    () =>
      Effect.gen(function* () {
        const state = makeState()
        const { url } = yield* listening(state)
        const writing = (subject: string) => ({ subject, register: true })
        const registry = yield* SchemaRegistry.make({ url }).pipe(Effect.provide(FetchHttpClient.layer))
        const [json, orders, gifts, refunds] = yield* Effect.all([
          JsonSchema.serde(Order, writing("json-value")),
          Protobuf.serde(OrderSchema, writing("orders-value")),
          Protobuf.serde(GiftSchema, writing("gifts-value")),
          Protobuf.serde(RefundSchema, writing("refunds-value"))
        ]).pipe(Effect.provideService(SchemaRegistry.SchemaRegistry, registry))

        const order = create(OrderSchema, { id: "o-1", cents: 2n ** 53n + 1n, notes: { größe: "L" } })
        const gift = create(GiftSchema, { to: "ann" })
        const refund = create(RefundSchema, { order: "o-1" })
        const bodies = [
          hex(toBinary(OrderSchema, order)),
          hex(toBinary(GiftSchema, gift)),
          hex(toBinary(RefundSchema, refund))
        ] as const
        const ours = [written(orders, order), written(gifts, gift), written(refunds, refund)] as const
        const id = Buffer.from(ours[0], "hex").readInt32BE(1)

        const answers = yield* JavaClient.formats(url, [
          `json read ${written(json, new Order({ id: "o-1", cents: 5 }))}`,
          ...ours.map((bytes) => `protobuf read ${bytes}`),
          `json write 1 {"cents":7,"id":"o-2"}`,
          `protobuf write ${id} 0 ${bodies[0]}`,
          `protobuf write ${id} 0,1 ${bodies[1]}`,
          `protobuf write ${id} 1 ${bodies[2]}`
        ])

        assert.deepStrictEqual(JSON.parse(answers[0]!), { id: "o-1", cents: 5 })
        assert.deepStrictEqual(answers.slice(1, 4), [
          `shop.Order ${bodies[0]}`,
          `shop.Order.Gift ${bodies[1]}`,
          `shop.Refund ${bodies[2]}`
        ])
        assert.deepStrictEqual(yield* read(json, answers[4]!), new Order({ id: "o-2", cents: 7 }))
        assert.deepStrictEqual(answers.slice(5), [...ours])
        assert.deepStrictEqual(yield* read(orders, answers[5]!), order)
        assert.deepStrictEqual(yield* read(gifts, answers[6]!), gift)
        assert.deepStrictEqual(yield* read(refunds, answers[7]!), refund)
      }).pipe(Effect.scoped),
    timeoutMillis
  )
})
