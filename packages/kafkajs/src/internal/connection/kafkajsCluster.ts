/**
 * Opens kafkajs's cluster object with this package's sockets, credentials and log. The object has methods below kafkajs's public API; one of
 * them, how a broker asks for metadata, is replaced.
 */
import type * as tls from "node:tls"
import { Duration, Effect } from "effect"
import { Kafka, logLevel, type Mechanism } from "kafkajs"
import { Encoder, type KafkaCluster } from "../wire/kafkajsInternals.ts"
import { patchKafkajs, preparedSasl } from "../wire/kafkajsPatches.ts"
import { logBridge } from "../wire/logBridge.ts"
import { call } from "../wire/requests.ts"
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
  readonly cluster: KafkaCluster
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

/** kafkajs fails all topics when one is missing, and asks for all topics when it is given none. */
const requestGivenTopicsOnly = (cluster: KafkaCluster): void => {
  const createBroker = cluster.brokerPool.createBroker
  cluster.brokerPool.createBroker = (options) => {
    const broker = createBroker(options)
    broker.metadata = (topics) =>
      Effect.runPromise(
        call(
          broker,
          "Metadata",
          { topics, allowAutoTopicCreation: false },
          {
            encode: () => new Encoder().writeArray(topics).writeBoolean(false)
          }
        ).pipe(Effect.mapError((failed) => Object.assign(new Error(failed.detail), { type: failed.type })))
      )
    return broker
  }
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
  const connectionTimeout = Duration.toMillis(options.connectionTimeout ?? defaults.connectionTimeoutMillis)
  const kafka = new Kafka({
    brokers: [...options.brokers],
    clientId: clientId ?? options.clientId ?? defaults.clientId,
    connectionTimeout,
    authenticationTimeout: connectionTimeout + credentialsTimeoutMillis,
    requestTimeout: Duration.toMillis(options.requestTimeout ?? defaults.requestTimeoutMillis),
    retry: { retries: options.retries ?? defaults.retries, initialRetryTime: 100, maxRetryTime: 1_000 },
    socketFactory: sockets.factory,
    logLevel: logLevel.WARN,
    logCreator: logBridge(context, options.security.redact),
    ...(credentials.sasl !== undefined && {
      sasl: preparedSasl(options.sasl?.mechanism ?? "", credentials.sasl)
    })
  })
  const cluster = captureCluster(kafka)
  requestGivenTopicsOnly(cluster)
  const opened: OpenCluster = { cluster, sockets }
  return opened
})

const closeTimeout = Duration.seconds(1)

/** Closes every socket, also those of nodes that do not answer. Takes a second at most. */
export const closeCluster = ({ cluster, sockets }: OpenCluster) =>
  Effect.promise(() => cluster.disconnect().catch(() => undefined)).pipe(
    // Finalizers are uninterruptible, and a timeout waits for what it cannot interrupt.
    Effect.interruptible,
    Effect.timeoutOption(closeTimeout),
    Effect.andThen(Effect.sync(sockets.destroyAll))
  )
