/**
 * A service without Effect: a promise handler, values that Zod checks, rules by class, a retry topic. SIGTERM and Ctrl-C finish the current payment, commit, and leave the group.
 *
 *   node packages/examples/src/promises.ts
 */
import { setTimeout } from "node:timers/promises"
import { consumer, createEventBus, deadLetter, defineTopic, on, Serde, standardSchema } from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { z } from "zod"

class CardDeclined extends Error {}

const payments = defineTopic("payments", {
  key: Serde.string,
  value: standardSchema(z.object({ id: z.string(), amount: z.int() }))
})

/** The bank takes a while for a large amount, and its first answer to `hiccup` is an error. */
const asked = new Set<string>()
const charge = async (id: string, amount: number, signal: AbortSignal) => {
  console.log(`charging ${id}`)
  await setTimeout(amount > 1000 ? 2_000 : 20, undefined, { signal })
  if (amount < 0) throw new CardDeclined("the bank said no")
  if (id === "hiccup" && !asked.has(id)) {
    asked.add(id)
    throw new Error("the bank did not answer")
  }
  console.log(`charged ${id}`)
}

const brokers = process.env["KAFKA_BROKERS"]

const bus = createEventBus({
  kafka: brokers === undefined ? memoryKafka({ topics: { payments: 1 } }) : { brokers: brokers.split(",") },
  consumers: {
    payments: consumer({
      ...payments,
      groupId: "accounting",
      handler: ({ value: { id, amount } }, { signal }) => charge(id, amount, signal),
      onError: [on(CardDeclined, ({ message }) => deadLetter(message))],
      retry: { blocking: { maxAttempts: 1 }, tiers: ["200ms"] }
    })
  }
})

await bus.start()
await bus.ready()
console.log("ready")
for (const [id, amount] of [
  ["declined", -5],
  ["hiccup", 20],
  ["slow", 5_000]
] as const) {
  await bus.publish(payments, { key: id, value: { id, amount } })
}
