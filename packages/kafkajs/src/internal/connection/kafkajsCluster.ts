/** Makes kafkajs's clients of single nodes, with this package's sockets, credentials and log. */
import type * as tls from "node:tls"
import { Ranges } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Kafka, logLevel, type Mechanism } from "kafkajs"
import type { KafkaCluster } from "../wire/kafkajsInternals.ts"
import { patchKafkajs, preparedSasl } from "../wire/kafkajsPatches.ts"
import { logBridge } from "../wire/logBridge.ts"
import { makeNodes, type Nodes } from "./nodes.ts"
import { defaults } from "./options.ts"
import { timeoutMillis as credentialsTimeoutMillis } from "./secrets.ts"
import type { SecuredOptions } from "./security.ts"
import { makeSockets, type Sockets } from "./sockets.ts"

/** Reads what a new connection needs, as promises, since kafkajs awaits them. undefined: not used. */
export interface Credentials {
  readonly tls: (() => Promise<tls.ConnectionOptions>) | undefined
  readonly sasl: (() => Promise<Mechanism["authenticationProvider"]>) | undefined
}

export interface OpenCluster {
  readonly nodes: Nodes
  readonly sockets: Sockets
}

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

/** Connects nothing yet. */
export const openCluster = Effect.fnUntraced(function* (
  options: SecuredOptions,
  clientId: string | undefined,
  credentials: Credentials
) {
  patchKafkajs()
  const sockets = makeSockets(credentials.tls)
  const context = yield* Effect.context<never>()
  const connectionTimeout = Ranges.millisOf(options.connectionTimeout ?? defaults.connectionTimeoutMillis)
  const kafka = new Kafka({
    brokers: [...options.brokers],
    clientId: clientId ?? options.clientId ?? defaults.clientId,
    connectionTimeout,
    authenticationTimeout: connectionTimeout + credentialsTimeoutMillis,
    requestTimeout: Ranges.millisOf(options.requestTimeout ?? defaults.requestTimeoutMillis),
    socketFactory: sockets.factory,
    logLevel: logLevel.WARN,
    logCreator: logBridge(context, options.security.redact),
    ...(credentials.sasl !== undefined && {
      sasl: preparedSasl(options.sasl?.mechanism ?? "", credentials.sasl)
    })
  })
  const { brokerPool, connectionPoolBuilder, rootLogger } = captureCluster(kafka)
  const nodes = makeNodes(options.brokers, options.silent, {
    addressCount: sockets.addressCount,
    open: async (address) =>
      brokerPool.createBroker({ connectionPool: await connectionPoolBuilder.build(address), logger: rootLogger })
  })
  const opened: OpenCluster = { nodes, sockets }
  return opened
})

const closeTimeout = Duration.seconds(1)

/** Closes every socket, also those of nodes that do not answer. Takes a second at most. */
export const closeCluster = ({ nodes, sockets }: OpenCluster) =>
  Effect.promise(() => nodes.close().catch(() => undefined)).pipe(
    // Finalizers are uninterruptible, and a timeout waits for what it cannot interrupt.
    Effect.interruptible,
    Effect.timeoutOption(closeTimeout),
    Effect.andThen(Effect.sync(sockets.destroyAll))
  )
