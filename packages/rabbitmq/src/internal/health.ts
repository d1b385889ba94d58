/** How RabbitMQ is: asked by a request on the connection of the consumers, which RabbitMQ reads from during an alarm, too. */
import type { BrokerHealth } from "@eventbus/messaging/BrokerHealth"
import * as Effect from "effect/Effect"
import type { Connection } from "./connection.ts"
import * as Failures from "./failures.ts"
import { onChannel } from "./topology.ts"

const limitMillis = 10_000

const details = ["cluster_name", "product", "version"] as const

/** Asks now. `publishing` is the connection that an alarm blocks. */
export const healthOf = (connection: Connection, publishing: Connection): Effect.Effect<BrokerHealth> => {
  const ask = Effect.flatMap(connection.model, (model) =>
    Effect.tryPromise({
      try: () => onChannel(model, async () => model.connection.serverProperties),
      catch: Failures.ofChannel
    })
  )
  return ask.pipe(
    Effect.timeoutOrElse({
      duration: limitMillis,
      orElse: () =>
        Effect.fail(
          connection.state.failure ??
            Failures.failure("Unreachable", `RabbitMQ at ${connection.state.address} gave no answer within 10 seconds.`)
        )
    }),
    Effect.match({
      onSuccess: (properties): BrokerHealth => {
        const { blocked, failure } = publishing.state
        return {
          status: failure === undefined ? "UP" : "DOWN",
          details: {
            clusterId: String(properties[details[0]] ?? ""),
            product: properties.product,
            version: properties.version,
            brokers: connection.state.address,
            brokersAvailable: 1,
            ...(blocked !== undefined && { blocked })
          },
          ...(failure !== undefined && { error: failure.message, errorType: failure.reason })
        }
      },
      onFailure: (failure): BrokerHealth => ({
        status: "DOWN",
        details: { brokers: connection.state.address, brokersAvailable: 0 },
        error: failure.message,
        errorType: failure.reason
      })
    })
  )
}
