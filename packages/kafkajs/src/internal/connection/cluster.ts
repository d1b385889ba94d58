/**
 * One connection to a cluster: nodes, metadata, coordinators. Owns the sockets: closing the scope closes every one of them, also
 * when a node does not answer.
 */
import { Duration, Effect, FiberSet, Result, Semaphore } from "effect"
import { Kafka, logLevel } from "kafkajs"
import type { Apis, TopicMetadata } from "../wire/apis.ts"
import { type ClientFailure, check, clientFailure, failure, Local, thrownFailure } from "../wire/errors.ts"
import { Encoder, type KafkaBroker, type KafkaCluster } from "../wire/kafkajsInternals.ts"
import { patchKafkajs, preparedSasl } from "../wire/kafkajsPatches.ts"
import { logBridge } from "../wire/logBridge.ts"
import { call } from "../wire/wire.ts"
import { defaults } from "./options.ts"
import { timeoutMillis as credentialsTimeoutMillis } from "./secrets.ts"
import type { Secured } from "./security.ts"
import { makeSockets, type Sockets } from "./sockets.ts"

export interface Cluster {
  readonly node: (nodeId: number) => Effect.Effect<KafkaBroker, ClientFailure>
  readonly anyNode: Effect.Effect<KafkaBroker, ClientFailure>
  /** Topics by name; one that does not exist carries its error code. Also learns the nodes' addresses. */
  readonly metadata: (topics: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure>
  readonly allTopics: Effect.Effect<ReadonlyArray<string>, ClientFailure>
  /** Ids of the nodes that run. */
  readonly nodes: Effect.Effect<ReadonlyArray<number>, ClientFailure>
  readonly coordinator: (kind: "group" | "transaction", key: string) => Effect.Effect<KafkaBroker, ClientFailure>
}

const closeTimeout = Duration.seconds(1)

/** kafkajs gives its cluster to the factory of a partition assigner: the public way to get hold of one. */
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

/** kafkajs fails all topics for one that is missing, and asks for all topics when it is given none. */
const askOnlyWhatIsMeant = (cluster: KafkaCluster): void => {
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

/** Runs what kafkajs waits for, until the scope closes. */
const makeRun = Effect.map(
  FiberSet.makeRuntimePromise(),
  (run) =>
    async <A>(effect: Effect.Effect<A, ClientFailure>): Promise<A> =>
      Result.getOrThrowWith(await run(Effect.result(effect)), thrownFailure)
)

type Run = Effect.Success<typeof makeRun>

const open = Effect.fnUntraced(function* (options: Secured, clientId: string | undefined, run: Run) {
  patchKafkajs()
  const { tls, sasl, scrub } = options.security
  const sockets = makeSockets(tls === undefined ? undefined : () => run(tls))
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
    logCreator: logBridge(context, scrub),
    ...(sasl !== undefined && {
      sasl: preparedSasl(options.sasl?.mechanism ?? "", () => run(sasl))
    })
  })
  const cluster = captureCluster(kafka)
  askOnlyWhatIsMeant(cluster)
  return { cluster, sockets }
})

const shut = (cluster: KafkaCluster, sockets: Sockets) =>
  Effect.promise(() => cluster.disconnect().catch(() => undefined)).pipe(
    // finalizers are uninterruptible, and a timeout waits for what it cannot interrupt
    Effect.interruptible,
    Effect.timeoutOption(closeTimeout),
    Effect.andThen(Effect.sync(sockets.destroyAll))
  )

/** A listener of another protocol hangs up without a word. */
const withHint = (failed: ClientFailure, { ssl, sasl }: Secured): ClientFailure => {
  if (
    failed.type !== Local.connection ||
    !/closed connection|closed by the server|before secure TLS/i.test(failed.detail)
  )
    return failed
  const expected = [ssl ? "speak TLS" : "speak plain text", sasl ? "authenticate by SASL" : "want no `sasl`"].join(
    " and "
  )
  return failure(failed.type, `${failed.detail} (does the listener ${expected}, as the settings say?)`)
}

/** Connects; fails within (retries + 1) connection timeouts and the pauses between them. */
export const connect = Effect.fnUntraced(function* (options: Secured, clientId?: string) {
  const run = yield* makeRun
  const { cluster } = yield* Effect.acquireRelease(open(options, clientId, run), ({ cluster, sockets }) =>
    shut(cluster, sockets)
  )
  const attempt = <A>(evaluate: () => Promise<A>): Effect.Effect<A, ClientFailure> =>
    Effect.tryPromise({ try: evaluate, catch: clientFailure })
  const pool = cluster.brokerPool as KafkaCluster["brokerPool"] & {
    readonly findBroker: (node: { readonly nodeId: number }) => Promise<KafkaBroker>
    readonly metadata: Apis["Metadata"]["response"]
  }
  // the pool keeps only the answer of the last request, so one at a time
  const oneAtATime = yield* Semaphore.make(1)
  const metadata = (topics: ReadonlyArray<string>) =>
    attempt(async () => {
      await pool.refreshMetadata(topics)
      return new Map(pool.metadata.topicMetadata.map((topic) => [topic.topic, topic]))
    }).pipe(oneAtATime.withPermits(1))
  const node = (nodeId: number) =>
    nodeId < 0
      ? Effect.fail(failure(Local.connection, "the partition has no leader at the moment"))
      : attempt(() => pool.findBroker({ nodeId }))
  const anyNode = attempt(() => pool.findConnectedBroker())
  const coordinator = Effect.fnUntraced(function* (kind: "group" | "transaction", key: string) {
    const broker = yield* anyNode
    const answer = yield* call(broker, "GroupCoordinator", { groupId: key, coordinatorType: kind === "group" ? 0 : 1 })
    yield* check(answer.errorCode)
    return yield* node(answer.coordinator.nodeId).pipe(
      // a node that came after the last look at the cluster
      Effect.catch(() => Effect.andThen(metadata([]), node(answer.coordinator.nodeId)))
    )
  })
  const all = Effect.flatMap(anyNode, (broker) =>
    call(broker, "Metadata", { topics: [], allowAutoTopicCreation: false })
  )
  const allTopics = Effect.map(all, ({ topicMetadata }) => topicMetadata.map(({ topic }) => topic))
  const nodes = attempt(async () => {
    await pool.refreshMetadata([])
    return pool.metadata.brokers.map(({ nodeId }) => nodeId)
  }).pipe(oneAtATime.withPermits(1))
  yield* attempt(() => cluster.connect()).pipe(
    Effect.andThen(metadata([])),
    Effect.mapError((failed) => withHint(failed, options))
  )
  const self: Cluster = { node, anyNode, metadata, allTopics, nodes, coordinator }
  return self
})
