/** The bus of the recipes: one consumer, the admin API with probes and metrics. Each recipe mounts it in a framework. */
import { setTimeout } from "node:timers/promises"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { consumer, createEventBus, defineTopic, Serde, standardSchema } from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { Prometheus } from "@eventbus/observability"
import { z } from "zod"

const { KAFKA_BROKERS, TOPIC = "orders", GROUP = "billing", ADMIN_TOKEN = "secret" } = process.env

export const orders = defineTopic(TOPIC, { key: Serde.string, value: standardSchema(z.object({ id: z.string() })) })

/** Charging the order `slow` takes a while. */
export const charge = async (id: string, signal: AbortSignal) => {
  console.log(`charging ${id}`)
  await setTimeout(id === "slow" ? 1_500 : 1, undefined, { signal })
  console.log(`charged ${id}`)
}

/** The admin API below `/eventbus`, and beside it `/health/live`, `/health/ready` and `/metrics`. */
export const admin = AdminWeb.mount({
  authorizer: Authorizer.fromTokens([
    { token: ADMIN_TOKEN, name: "on-call", permissions: ["view", "operate", "replay"] }
  ]),
  metrics: Prometheus.exposition
})

export const kafka =
  KAFKA_BROKERS === undefined ? memoryKafka({ topics: { [TOPIC]: 1 } }) : { brokers: KAFKA_BROKERS.split(",") }

export const group = GROUP

export const bus = createEventBus({
  kafka,
  extension: admin.extension,
  // The recipe ends its server behind the bus, so the signal is its own.
  signals: [],
  consumers: {
    orders: consumer({ ...orders, groupId: GROUP, handler: ({ value }, { signal }) => charge(value.id, signal) })
  }
})

/** At SIGTERM the bus drains while the server still answers its probes; then the server ends, and the process with it. */
export const stopAtSigterm = (closeServer: () => unknown): void => {
  process.once("SIGTERM", async () => {
    await bus.stop()
    await closeServer()
  })
}

/** Where the server listens. Port 0 means any that is free. */
export const port = Number(process.env["PORT"] ?? 8080)

export const listens = (on: number): void => console.log(`listening on ${on}`)
