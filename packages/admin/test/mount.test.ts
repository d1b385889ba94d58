/** The API of a program without Effect, mounted before its bus starts. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb } from "@eventbus/admin"
import { consumer, createEventBus } from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { everything, token } from "./api.ts"

describe("RCH-08 AdminWeb.mount", () => {
  it("is alive and not ready before the start, answers once the bus runs, and again after another start", async () => {
    const kafka = memoryKafka({ topics: { orders: 1 } })
    const admin = AdminWeb.mount({ prefix: "/ops", authorizer: everything })
    const orders = consumer({ topic: "orders", groupId: "billing", handler: () => undefined })
    const bus = createEventBus({ kafka, signals: [], log: "off", extension: admin.extension, consumers: { orders } })
    const ask = async (path: string) => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await admin.handler(new Request(`http://localhost${path}`, { headers }))
      return { status: response.status, body: (await response.json()) as unknown }
    }
    assert.deepStrictEqual(await ask("/health/live"), { status: 200, body: { status: "UP" } })
    const starting = { status: "DOWN", _tag: "Starting", message: "The program is starting." }
    assert.deepStrictEqual(await ask("/health/ready"), { status: 503, body: starting })
    assert.deepStrictEqual(await ask("/ops/bindings"), { status: 503, body: starting })
    for (let round = 0; round < 2; round++) {
      await bus.start()
      await bus.ready()
      assert.deepStrictEqual(await ask("/health/ready"), { status: 200, body: { status: "UP" } })
      assert.propertyVal(((await ask("/ops/bindings")).body as ReadonlyArray<object>)[0], "key", "default:orders")
      await bus.stop()
      assert.deepStrictEqual(await ask("/health/ready"), { status: 503, body: { status: "DOWN" } })
    }
    await kafka.close()
  })
})
