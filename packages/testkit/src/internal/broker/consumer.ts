/**
 * A consumer's connection to the cluster: the scope of its session, its heartbeats, its fetch loop and its requests.
 */
import { Adapter, type Broker, BrokerError, Defaults } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { type Cluster, connectionDropped } from "./cluster.ts"
import type { ConsumerGroup } from "./consumerGroup.ts"
import { EventBuffer, makeQueue } from "./eventBuffer.ts"
import type { Connection } from "./network.ts"
import { Session } from "./session.ts"
import { StaticMembers } from "./staticMembers.ts"

/** The connection of each session, for tests that cut it. */
export const connectionOf = new WeakMap<Broker.ConsumerSession, Connection>()

export const make = (cluster: Cluster) => {
  const statics = new StaticMembers()
  return (
    options: Broker.ConsumerOptions
  ): Effect.Effect<Broker.ConsumerSession, BrokerError.BrokerError, Scope.Scope> =>
    Effect.gen(function* () {
      const clientId = cluster.clientId(options.clientId)
      const { groupId } = options
      const group = cluster.group(groupId)
      const buffer = new EventBuffer(yield* Effect.acquireRelease(makeQueue, Queue.shutdown))
      let session: Session | undefined
      const connection = yield* Effect.acquireRelease(
        Effect.sync(() =>
          cluster.network.connect(clientId, "consumer", (change) => {
            if (change === "restored") return session?.wake()
            connection.cut = true
            session?.die(connectionDropped)
          })
        ),
        (connection) => Effect.sync(() => cluster.network.disconnect(connection))
      )
      const opened = yield* Effect.acquireRelease(
        cluster.network.request(connection, { operation: "join", clientId, groupId }, () =>
          Effect.suspend(() => {
            group.replaceFormer(options.groupInstanceId, options.replacesGroupInstanceIds ?? [])
            const refusal = group.refusal(strategiesOf(options))
            return refusal
              ? Effect.fail(refusal)
              : Effect.succeed(open({ cluster, group, connection, buffer, statics }, options))
          })
        ),
        (session) => Effect.sync(() => close(cluster, group, connection, session))
      )
      session = opened
      yield* Effect.forkScoped(opened.pump(paceMillis(cluster, clientId, groupId)))
      yield* Effect.forkScoped(heartbeats(cluster, group, connection, opened, options))
      const port = sessionPort(cluster, group, connection, opened, buffer.queue)
      connectionOf.set(port, connection)
      return port
    })
}

const strategiesOf = ({ partitionAssignmentStrategy }: Broker.ConsumerOptions) =>
  partitionAssignmentStrategy ?? Defaults.binding.partitionAssignmentStrategy

interface Client {
  readonly cluster: Cluster
  readonly group: ConsumerGroup
  readonly connection: Connection
  readonly buffer: EventBuffer
  readonly statics: StaticMembers
}

const open = ({ cluster, group, connection, buffer, statics }: Client, options: Broker.ConsumerOptions): Session => {
  const { kernel, network } = cluster
  const limits = {
    isolation: options.isolationLevel ?? Adapter.fetchDefaults.isolationLevel,
    maxBytesOf: (topic: string) => Adapter.maxFetchBytes(options, topic),
    maxRecordBytes: options.maxRecordBytes ?? Adapter.fetchDefaults.maxRecordBytes,
    maxRecords: kernel.settings.maxRecordsPerChunk
  }
  const session = new Session(
    {
      ...{ kernel, group, buffer, limits, reaches: () => network.reaches(connection) },
      mayJoin: options.mayJoin ?? (() => true),
      former: statics.of(group.groupId, connection.clientId, options.groupInstanceId)
    },
    {
      clientId: connection.clientId,
      groupInstanceId: options.groupInstanceId,
      topics: new Set(options.topics),
      strategies: strategiesOf(options),
      copartitionedTopics: options.copartitionedTopics ?? [],
      sessionTimeoutMillis: Duration.toMillis(options.sessionTimeout ?? "45 seconds"),
      rebalanceTimeoutMillis: Duration.toMillis(options.rebalanceTimeout ?? "60 seconds")
    }
  )
  kernel.topics.listeners.add(session.rewatch)
  return session
}

const close = (cluster: Cluster, group: ConsumerGroup, connection: Connection, session: Session): void => {
  cluster.kernel.topics.listeners.delete(session.rewatch)
  const heard = cluster.network.reaches(connection)
  session.close()
  if (heard && session.member.groupInstanceId === undefined) group.leave(session.member)
}

/** One heartbeat, whose answer tells the session what has changed in the group. */
const beat = (
  cluster: Cluster,
  group: ConsumerGroup,
  connection: Connection,
  session: Session,
  timeoutMillis?: number
): Effect.Effect<void, BrokerError.BrokerError> => {
  const call = { operation: "heartbeat", clientId: connection.clientId, groupId: group.groupId } as const
  const answer = Effect.sync(() => {
    if (session.member.state === "joined") group.heartbeat(session.member)
    session.sync()
  })
  return cluster.network.request(connection, call, () => answer, timeoutMillis)
}

const heartbeats = (
  cluster: Cluster,
  group: ConsumerGroup,
  connection: Connection,
  session: Session,
  options: Broker.ConsumerOptions
): Effect.Effect<void> => {
  const sessionTimeoutMillis = Duration.toMillis(options.sessionTimeout ?? "45 seconds")
  const asked = Duration.toMillis(options.heartbeatInterval ?? "10 seconds")
  const intervalMillis = Math.min(asked, sessionTimeoutMillis / 3)
  const confirmed = Effect.suspend(() => {
    const sentMillis = cluster.kernel.nowMillis()
    return Effect.map(beat(cluster, group, connection, session, intervalMillis), () => {
      session.confirmedMillis = sentMillis
    })
  })
  return Effect.whileLoop({
    while: () => session.open,
    body: () => Effect.ignore(Effect.delay(confirmed, intervalMillis)),
    step: () => {}
  })
}

/** The duration of one fetch, with the delay of the fault plan. A lost fetch is repeated after half a second. */
const paceMillis =
  (cluster: Cluster, clientId: string, groupId: string) =>
  (topic: string): number => {
    const decision = cluster.faults.decide({ operation: "fetch", clientId, topic, groupId })
    const repeatMillis = decision.lost === "no" && decision.refusal === undefined ? 0 : 500
    return cluster.kernel.settings.latencyMillis.fetch + decision.delayMillis + repeatMillis
  }

/** How often a member asks for its next generation, after one was refused. */
const askInterval = "100 millis"

/** The member as transactions name it. */
const metadataOf =
  (
    cluster: Cluster,
    group: ConsumerGroup,
    connection: Connection,
    session: Session
  ): Broker.ConsumerSession["groupMetadata"] =>
  (assignments, refused) => {
    const { groupId } = group
    const other: Effect.Effect<Broker.ConsumerGroupMetadata, BrokerError.BrokerError> = Effect.suspend(() => {
      const partitions = session.stale(assignments)
      if (partitions.length > 0) return Effect.fail(new BrokerError.StaleAssignment({ groupId, partitions }))
      const { generation: generationId, member } = session
      const { memberId, groupInstanceId } = member
      const isRefused = generationId === refused?.generationId && memberId === refused.memberId
      if (!isRefused) return Effect.succeed({ groupId, generationId, memberId, groupInstanceId })
      return Effect.andThen(
        Effect.orElseSucceed(beat(cluster, group, connection, session), () => undefined),
        Effect.delay(other, askInterval)
      )
    })
    return Effect.timeoutOrElse(other, {
      duration: session.member.rebalanceTimeoutMillis,
      orElse: () => Effect.fail(new BrokerError.RebalanceInProgress({ groupId }))
    })
  }

const sessionPort = (
  cluster: Cluster,
  group: ConsumerGroup,
  connection: Connection,
  session: Session,
  events: Broker.ConsumerSession["events"]
): Broker.ConsumerSession => ({
  events,
  clusterId: cluster.kernel.clusterId,
  pause: (partitions) => Effect.sync(() => session.pause(partitions)),
  resume: (partitions) => Effect.sync(() => session.resume(partitions)),
  seek: (partition, offset) => Effect.sync(() => session.seek(partition, offset)),
  commit: (offsets) =>
    Effect.suspend(() => {
      const { groupId } = group
      const partitions = session.stale(offsets)
      if (partitions.length > 0) return Effect.fail(new BrokerError.StaleAssignment({ groupId, partitions }))
      const negative = offsets.find((entry) => entry.offset < 0n)
      if (negative) return Effect.fail(illegalOffset(negative.offset))
      const call = { operation: "commit", clientId: connection.clientId, groupId } as const
      return cluster.network.request(connection, call, () => {
        const problem = group.commit(session.member, offsets)
        return problem ? Effect.fail(problem) : Effect.void
      })
    }),
  groupMetadata: metadataOf(cluster, group, connection, session),
  isUnconfirmed: () => cluster.kernel.nowMillis() - session.confirmedMillis >= session.member.sessionTimeoutMillis
})

const illegalOffset = (offset: bigint): BrokerError.UnexpectedBrokerError =>
  new BrokerError.UnexpectedBrokerError({
    operation: "commit",
    code: "INVALID_OFFSET",
    detail: `${offset} is not an offset to read from`,
    retryable: false
  })
