/** A connection to a cluster: its nodes, metadata and coordinators. Closing the scope closes every socket. */
import { type Broker, Ranges } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Apis, TopicMetadata } from "../protocol/apis.ts"
import { check } from "../wire/failures.ts"
import { call, metadataOf } from "../wire/requests.ts"
import { isWorthAnotherTry } from "./firstAnswer.ts"
import type { Nodes } from "./nodes.ts"
import { closeNodes, openNodes } from "./openNodes.ts"
import { defaults } from "./options.ts"
import type { SecuredOptions } from "./security.ts"
import { untilMoved } from "./untilMoved.ts"

/** A role that one node of the cluster has for each key. */
export type CoordinatorKind = "group" | "transaction"

export interface Cluster {
  /** The id of the cluster; empty when it does not say. */
  readonly id: string
  /** The node with this id; fails for -1, which is how metadata names a missing leader. */
  readonly node: (nodeId: number) => Effect.Effect<NodeClient, ClientFailure>
  /** Whether the node with this id has not answered lately. */
  readonly isSilent: (nodeId: number) => boolean
  /** Notes when a node does not answer a request within a second, and when it does. */
  readonly watch: Nodes["watch"]
  /** The first answer to a request that every node can answer, and that may reach more than one. */
  readonly askAny: Nodes["ask"]
  /** A node that has just answered. */
  readonly anyNode: Effect.Effect<NodeClient, ClientFailure>
  /** Metadata by topic, from whichever node answers first. A topic that does not exist carries its error code. Also learns the addresses of the nodes. */
  readonly metadata: (topics: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure>
  /** Names of all topics. */
  readonly allTopics: Effect.Effect<ReadonlyArray<string>, ClientFailure>
  /** The nodes that run, and the controller. */
  readonly describe: Effect.Effect<Broker.ClusterDescription, ClientFailure>
  /** The node that coordinates a group, or a transactional id. */
  readonly coordinator: (kind: CoordinatorKind, key: string) => Effect.Effect<NodeClient, ClientFailure>
  /** Runs a request to a coordinator. Fails like a request to a former coordinator when another node becomes it while this one is silent. */
  readonly whileCoordinator: <A>(
    kind: CoordinatorKind,
    key: string,
    coordinator: NodeClient,
    request: Effect.Effect<A, ClientFailure>
  ) => Effect.Effect<A, ClientFailure>
  /** `coordinator` and `whileCoordinator`, for a request that a coordinator answers at once. */
  readonly askCoordinator: <A>(
    kind: CoordinatorKind,
    key: string,
    request: (coordinator: NodeClient) => Effect.Effect<A, ClientFailure>
  ) => Effect.Effect<A, ClientFailure>
}

/** Runs effects that a transport awaits as promises, until the scope closes. */
const makeRun = Effect.map(
  FiberSet.makeRuntimePromise(),
  (run) =>
    async <A>(effect: Effect.Effect<A, ClientFailure>): Promise<A> =>
      Result.getOrThrowWith(await run(Effect.result(effect)), (failed) => failed)
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

type Metadata = Apis["Metadata"]["response"]

const notCoordinator = failure("NOT_COORDINATOR", "another node has become the coordinator")

const described = (found: Metadata): Broker.ClusterDescription => {
  const brokers = found.brokers
    .map(({ nodeId, host, port }) => ({ id: nodeId, host, port }))
    .sort((a, b) => a.id - b.id)
  return {
    ...{ clusterId: found.clusterId ?? "", brokers },
    controller: brokers.find(({ id }) => id === found.controllerId)
  }
}

/** The look-ups of coordinators. */
const coordinators = ({ ask, has, learn, node }: Nodes): Pick<Cluster, "coordinator" | "whileCoordinator"> => {
  const lookUp = Effect.fnUntraced(function* (kind: CoordinatorKind, key: string, except?: NodeClient) {
    const payload = { groupId: key, coordinatorType: kind === "group" ? 0 : 1 } as const
    const answer = yield* ask((broker) => call(broker, "GroupCoordinator", payload), except)
    yield* check(answer.errorCode)
    return answer.coordinator
  })
  return {
    coordinator: Effect.fnUntraced(function* (kind, key) {
      const { nodeId } = yield* lookUp(kind, key)
      const learnNodes = Effect.flatMap(
        ask((broker) => metadataOf(broker, [])),
        ({ brokers }) => learn(brokers)
      )
      // The node may have joined, or moved to another address, after the last metadata request.
      return has(nodeId)
        ? yield* Effect.tapError(node(nodeId), () => Effect.ignore(learnNodes))
        : yield* Effect.andThen(
            learnNodes,
            Effect.suspend(() => node(nodeId))
          )
    }),
    whileCoordinator: (kind, key, coordinator, request) => {
      const { host, port } = coordinator
      const moved = Effect.map(lookUp(kind, key, coordinator), (now) =>
        now.host === host && now.port === port ? undefined : notCoordinator
      )
      return untilMoved(request, moved)
    }
  }
}

/** How often connecting is repeated, and when it is not. */
export interface Persistence {
  /** Whether the caller repeats connecting itself, and says so: addresses that accept and are silent are then not asked twice. */
  readonly isSupervised: boolean
}

/** Pauses between attempts to connect: 100 ms, growing to a second. */
const pauses = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("1 second")])

/**
 * Connects to the bootstrap address that answers first. Fails after (`retries` + 1) connection timeouts and the pauses between them; with
 * `isSupervised` after one of a silent address.
 */
export const connect = Effect.fnUntraced(function* (
  options: SecuredOptions,
  clientId?: string,
  { isSupervised }: Persistence = { isSupervised: false }
) {
  const run = yield* makeRun
  const { nodes } = yield* Effect.acquireRelease(openNodes(options, clientId, run), closeNodes)
  const { ask, learn, node } = nodes
  const metadataFrom = Effect.fnUntraced(function* (topics: ReadonlyArray<string>) {
    const found = yield* ask((broker) => metadataOf(broker, topics))
    yield* learn(found.brokers)
    return found
  })
  const allTopics = Effect.map(
    ask((broker) => metadataOf(broker, null)),
    ({ topicMetadata }) => topicMetadata.map(({ topic }) => topic)
  )
  const startedAt = performance.now()
  const limitMillis = Ranges.millisOf(options.connectionTimeout ?? defaults.connectionTimeoutMillis)
  const clusterId = yield* Effect.retry(nodes.bootstrap, {
    schedule: pauses,
    times: options.retries ?? defaults.retries,
    while: (failed) => isWorthAnotherTry(failed) && !(isSupervised && performance.now() - startedAt >= limitMillis)
  }).pipe(Effect.mapError((failed) => withHint(failed, options)))
  const { coordinator, whileCoordinator } = coordinators(nodes)
  const self: Cluster = {
    id: clusterId ?? "",
    node,
    isSilent: nodes.isSilent,
    watch: nodes.watch,
    askAny: ask,
    anyNode: ask((broker) => Effect.as(metadataOf(broker, []), broker)),
    metadata: (topics) =>
      Effect.map(
        metadataFrom(topics),
        ({ topicMetadata }) => new Map(topicMetadata.map((topic) => [topic.topic, topic]))
      ),
    allTopics,
    describe: Effect.map(metadataFrom([]), described),
    coordinator,
    whileCoordinator,
    askCoordinator: (kind, key, request) =>
      Effect.flatMap(coordinator(kind, key), (broker) =>
        whileCoordinator(kind, key, broker, nodes.watch(broker, request(broker)))
      )
  }
  return self
})
