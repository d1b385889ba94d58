/** A consumer of several topics. */
import { consumer, createEventBus, Serde } from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { expect, it, onTestFinished } from "vitest"
import { until } from "./bus.ts"

const noRetries = { blocking: { maxAttempts: 1 }, tiers: [] }

const startLedger = async (topic: string | ReadonlyArray<string>, handled: Array<string>) => {
  const kafka = memoryKafka({ topics: { orders: 1, payments: 1 } })
  const ledger = consumer({
    ...{ topic, groupId: "accounting", value: Serde.string, retry: noRetries },
    handler: async ({ record, value }) => {
      if (value === "bad") throw new Error("bad")
      handled.push(`${record.topic} ${value}`)
    }
  })
  const bus = createEventBus({ kafka, signals: [], log: () => {}, consumers: { ledger } })
  onTestFinished(async () => {
    await bus.stop()
    await kafka.close()
  })
  await bus.start()
  return { bus, kafka }
}

it("RCH-11 a consumer reads a list of topics, and its dead letters are those of all of them or of one", async () => {
  const handled: Array<string> = []
  const { bus } = await startLedger(["orders", "payments"], handled)
  for (const topic of ["orders", "payments"]) {
    await bus.publish(topic, { key: "k", value: "good" })
    await bus.publish(topic, { key: "k", value: "bad" })
  }
  const all = await bus.deadLetters("ledger")
  await until(async () => (await all.stats()).count === 2)
  expect(handled.toSorted()).toEqual(["orders good", "payments good"])
  const { letters } = await all.letters()
  expect(letters.map(({ sourceTopic }) => sourceTopic).toSorted()).toEqual(["orders", "payments"])
  await expect(all.replay(1)).rejects.toThrow("expected a topic that the binding reads: orders, payments")
  await expect(bus.deadLetters("ledger", { topic: "refunds" })).rejects.toThrow("topic is refunds")
  const payments = await bus.deadLetters("ledger", { topic: "payments" })
  expect((await payments.replay(1)).replayed).toBe(1)
  const plans = await bus.runs("ledger", { topic: "orders" })
  expect((await plans.plan({ action: "replay", select: { all: true }, reason: "again" })).count).toBe(1)
  expect((await bus.snapshot("ledger")).topics).toEqual(["orders", "payments"])
})

it("RCH-11 a list that cannot be read is refused at the start, with path, value and what is allowed", async () => {
  const start = startLedger(["orders", "orders.DLT"], [])
  await expect(start).rejects.toThrow(/topic\[1\].*'orders\.DLT'.*topic 'orders' of the list derives 'orders\.DLT'/)
})
