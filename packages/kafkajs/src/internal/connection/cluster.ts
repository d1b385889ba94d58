/** A connection to a cluster: its nodes, metadata and coordinators. Closing the scope closes every socket. */
import { Effect, FiberSet, Result, Semaphore } from "effect"
import type { TopicMetadata } from "../wire/apis.ts"
import { type ClientFailure, check, clientFailure, failure, Local, thrownFailure } from "../wire/clientFailure.ts"
import type { KafkaBroker } from "../wire/kafkajsInternals.ts"
import { call } from "../wire/requests.ts"
import { closeCluster, openCluster } from "./kafkajsCluster.ts"
import type { SecuredOptions } from "./security.ts"

export interface Cluster {
  /** The id of the cluster; empty when it does not say. */
  readonly id: string
  /** The node with this id; fails for -1, which is how metadata names a missing leader. */
  readonly node: (nodeId: number) => Effect.Effect<KafkaBroker, ClientFailure>
  /** A connected node; connects to one when there is none. */
  readonly anyNode: Effect.Effect<KafkaBroker, ClientFailure>
  /** Metadata by topic. A topic that does not exist carries its error code. Also learns the addresses of the nodes. */
  readonly metadata: (topics: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure>
  /** Names of all topics. */
  readonly allTopics: Effect.Effect<ReadonlyArray<string>, ClientFailure>
  /** Ids of the nodes that run. */
  readonly nodes: Effect.Effect<ReadonlyArray<number>, ClientFailure>
  /** The node that coordinates a group, or a transactional id. */
  readonly coordinator: (kind: "group" | "transaction", key: string) => Effect.Effect<KafkaBroker, ClientFailure>
}

/** Runs effects that kafkajs awaits as promises, until the scope closes. */
const makeRun = Effect.map(
  FiberSet.makeRuntimePromise(),
  (run) =>
    async <A>(effect: Effect.Effect<A, ClientFailure>): Promise<A> =>
      Result.getOrThrowWith(await run(Effect.result(effect)), thrownFailure)
)

/** A listener of another security protocol closes the connection without an answer, so the error asks for the settings. */
const withHint = (failed: ClientFailure, { ssl, sasl }: SecuredOptions): ClientFailure => {
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

/** Connects. Fails after (`retries` + 1) connection timeouts and the pauses between them. */
export const connect = Effect.fnUntraced(function* (options: SecuredOptions, clientId?: string) {
  const run = yield* makeRun
  const { tls, sasl } = options.security
  const credentials = { tls: tls && (() => run(tls)), sasl: sasl && (() => run(sasl)) }
  const { cluster } = yield* Effect.acquireRelease(openCluster(options, clientId, credentials), closeCluster)
  const attempt = <A>(evaluate: () => Promise<A>): Effect.Effect<A, ClientFailure> =>
    Effect.tryPromise({ try: evaluate, catch: clientFailure })
  const pool = cluster.brokerPool
  // The pool keeps only the answer to its last request, so its requests run one at a time.
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
      // The node may have joined after the last metadata request.
      Effect.catch(() => Effect.andThen(metadata([]), node(answer.coordinator.nodeId)))
    )
  })
  const everything = Effect.flatMap(anyNode, (broker) =>
    call(broker, "Metadata", { topics: [], allowAutoTopicCreation: false })
  )
  const allTopics = Effect.map(everything, ({ topicMetadata }) => topicMetadata.map(({ topic }) => topic))
  const nodes = attempt(async () => {
    await pool.refreshMetadata([])
    return pool.metadata.brokers.map(({ nodeId }) => nodeId)
  }).pipe(oneAtATime.withPermits(1))
  yield* attempt(() => cluster.connect()).pipe(
    Effect.andThen(metadata([])),
    Effect.mapError((failed) => withHint(failed, options))
  )
  const self: Cluster = { id: pool.metadata.clusterId ?? "", node, anyNode, metadata, allTopics, nodes, coordinator }
  return self
})
