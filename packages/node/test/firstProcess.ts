/** A service that a container starts as its first process, without an init in front of it. Its timer stands for a server that is still open. */
import { consumer, createEventBus } from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"

const kafka = memoryKafka({ topics: { orders: 1 } })
const isStuck = process.argv[2] === "stuck"
const orders = consumer({
  topic: "orders",
  groupId: "billing",
  shutdownTimeout: "30 seconds",
  handler: async () => {
    console.log("handling")
    await new Promise((resolve) => setTimeout(resolve, isStuck ? 25_000 : 300))
    console.log("handled")
  }
})
const bus = createEventBus({ kafka, log: "off", consumers: { orders } })
await bus.start()
await bus.publish("orders", { value: "o-1" })
setInterval(() => {}, 1_000)
