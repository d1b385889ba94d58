import { assert, describe, it } from "@effect/vitest"
import { JsonSchema } from "@eventbus/json-schema"
import { consumer, createEventBus, defineTopic } from "@eventbus/node"
import { anyValue, schemaRegistry } from "@eventbus/node/schemaRegistry"
import { memoryKafka } from "@eventbus/node/testing"
import { Protobuf } from "@eventbus/protobuf"
import { Effect } from "effect"
import { z } from "zod"
import { OrderSchema } from "../../protobuf/test/messages.ts"
import { listening, makeState } from "../../schema-registry/test/registry.ts"

const Order = z.object({ id: z.string(), cents: z.int() })

describe("schemaRegistry", () => {
  it.live(
    "RCH-10 a bus without Effect publishes and reads JSON Schema checked by Zod; its password is a header alone",
    () =>
      Effect.gen(function* () {
        const state = makeState()
        const { url } = yield* listening(state)
        yield* Effect.promise(async () => {
          const registry = await schemaRegistry({ url, username: "ann", password: "geheim" })
          const value = await registry.serde(
            JsonSchema.serde(anyValue, { schema: z.toJSONSchema(Order), subject: "orders-value", register: true }),
            Order
          )
          const handled: Array<z.infer<typeof Order>> = []
          const kafka = memoryKafka({ topics: { orders: 1 } })
          const topic = defineTopic("orders", { value })
          const orders = consumer({ ...topic, groupId: "billing", handler: ({ value }) => void handled.push(value) })
          const bus = createEventBus({ kafka, consumers: { orders }, signals: [], log: "off" })
          await bus.start()
          await bus.publish(topic, { value: { id: "o-1", cents: 5 } })
          while (handled.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
          await bus.stop()
          assert.deepStrictEqual(handled, [{ id: "o-1", cents: 5 }])
          const refused = value.encode({ id: "o-1", cents: 1.5 })
          assert.include(JSON.stringify(refused), `[\\"cents\\"]`)
          assert.strictEqual(value.name, "json-schema(zod)")
        })
        const basic = `Basic ${btoa("ann:geheim")}`
        assert.isTrue(state.requests.every((request) => request.includes(basic)))
        assert.notInclude(state.requests.join().replaceAll(basic, ""), "geheim")
      }).pipe(Effect.scoped)
  )

  it.live(
    "RCH-10 Protobuf needs no schema beside it; a missing schema and a wrong option reject with their reasons",
    () =>
      Effect.gen(function* () {
        const { url } = yield* listening(makeState())
        yield* Effect.promise(async () => {
          const registry = await schemaRegistry({ url })
          assert.strictEqual((await registry.serde(Protobuf.serde(OrderSchema))).name, "protobuf")
          const missing = await registry.serde(Protobuf.serde(OrderSchema, { subject: "orders-value" })).catch(String)
          assert.include(String(missing), "the schema of subject shop/address.proto cannot be used")
          const wrong = await schemaRegistry({ url: "registry:8081", password: "geheim" }).catch(String)
          assert.include(String(wrong), "url: found (not shown)")
          assert.notInclude(String(wrong), "geheim")
        })
      }).pipe(Effect.scoped)
  )
})
