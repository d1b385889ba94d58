/**
 * A process that writes events and dies: `deadProcess.ts URL`. Its bus takes the events from the table, and its cluster has no topic for them. One transaction is still open when it says `ready`.
 */
import { createEventBus } from "@eventbus/node"
import { createOutbox, outboxDispatcher } from "@eventbus/node/outbox"
import { memoryKafka } from "@eventbus/node/testing"
import pg from "pg"

const [url = ""] = process.argv.slice(2)
const outbox = createOutbox({ dialect: "pg", notify: true })
const kafka = memoryKafka()
const bus = createEventBus({
  kafka,
  log: "off",
  outbox: outboxDispatcher({ database: url, interval: "100ms", lease: "1s" })
})
await bus.start()

const client = new pg.Client(url)
await client.connect()
for (let n = 0; n < 20; n++) {
  await client.query("BEGIN")
  await outbox.write(client, { topic: "orders", key: `k-${n % 3}`, value: String(n) })
  await client.query("COMMIT")
}
await client.query("BEGIN")
await outbox.write(client, { topic: "orders", key: "k-0", value: "never" })
while (!bus.health().reasons.some(({ message }) => message.includes("topic 'orders'"))) {
  await new Promise((resolve) => setTimeout(resolve, 20))
}
console.log("ready")
