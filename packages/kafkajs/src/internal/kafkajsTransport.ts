/** The client's seam on kafkajs: its clients of single nodes, with this project's sockets, credentials and log. */
import { Sockets, type Transport } from "@eventbus/kafka-client"
import * as Effect from "effect/Effect"
import { type ISocketFactory, Kafka, logLevel } from "kafkajs"
import type { KafkaCluster } from "./kafkajsInternals.ts"
import { kafkajsNode } from "./kafkajsNode.ts"
import { patchKafkajs } from "./kafkajsPatches.ts"
import { kafkajsSasl } from "./kafkajsSasl.ts"
import { logBridge } from "./logBridge.ts"

/** kafkajs passes its cluster to the factory of a partition assigner: the public way to get hold of it. */
const captureCluster = (kafka: Kafka): KafkaCluster => {
  let captured: unknown
  kafka.consumer({
    groupId: "unused",
    allowAutoTopicCreation: false,
    partitionAssigners: [
      ({ cluster }) => {
        captured = cluster
        return {
          name: "unused",
          version: 0,
          assign: async () => [],
          protocol: () => ({ name: "", metadata: Buffer.of() })
        }
      }
    ]
  })
  return captured as KafkaCluster
}

/** kafkajs's socket factory. `prepare` is an addition of this package: it must have succeeded before each call. */
const socketFactory = ({ open, prepare }: Sockets.Sockets) => {
  const factory: ISocketFactory = ({ host, port, onConnect }) => open({ host, port }, onConnect)
  return Object.assign(factory, { prepare })
}

/** Connects nothing yet. */
export const openTransport: Transport.Open = Effect.fnUntraced(function* (settings) {
  patchKafkajs()
  const { clientId, connectionTimeoutMillis, credentialsTimeoutMillis, requestTimeoutMillis, sasl } = settings
  const sockets = Sockets.makeSockets(settings.tls)
  const context = yield* Effect.context<never>()
  const kafka = new Kafka({
    // The client asks the bootstrap addresses itself.
    brokers: ["unused:9092"],
    clientId,
    connectionTimeout: connectionTimeoutMillis,
    authenticationTimeout: connectionTimeoutMillis + credentialsTimeoutMillis,
    requestTimeout: requestTimeoutMillis,
    socketFactory: socketFactory(sockets),
    logLevel: logLevel.WARN,
    logCreator: logBridge(context, settings.redact),
    ...(sasl !== undefined && { sasl: kafkajsSasl(sasl) })
  })
  const { brokerPool, connectionPoolBuilder, rootLogger } = captureCluster(kafka)
  const transport: Transport.Transport = {
    addressCount: sockets.addressCount,
    destroyAll: sockets.destroyAll,
    open: async (address) => {
      const connectionPool = await connectionPoolBuilder.build(address)
      return kafkajsNode(brokerPool.createBroker({ connectionPool, logger: rootLogger }))
    }
  }
  return transport
})
