/** The port's consumer session: starts the parts of a session, ends them with it, and carries out the consumer's commands. */
import { type Broker, type BrokerError, Ranges } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { fromThrown } from "../../ClientFailure.ts"
import type { BrokerErrors } from "../connection/brokerErrors.ts"
import { type Cluster, connect } from "../connection/cluster.ts"
import { defaults } from "../connection/options.ts"
import type { SecuredOptions } from "../connection/security.ts"
import { makeFetcher } from "../fetch/fetcher.ts"
import { makeClassicMembership } from "../group/classicMembership.ts"
import { makeCommit } from "../group/commits.ts"
import { makeConsumerMembership } from "../group/consumerMembership.ts"
import type { Membership, MembershipListener } from "../group/membership.ts"
import { Ownership } from "../group/ownership.ts"
import { defectAsFailure } from "../wire/failures.ts"
import { type AbandonedMembers, leaveOrRemember, removeAbandoned } from "./abandonedMembers.ts"
import { giveUpAll, lookUpTopicIds, loseAll, onAssigned, onTopicDeleted } from "./assignmentEvents.ts"
import { makeGroupMetadata } from "./groupMetadata.ts"
import { memberConnection, type SessionSettings, sessionSettings } from "./sessionSettings.ts"
import { awaitTaken, discardChunks, emit, noTopicsKnown, type SessionState } from "./sessionState.ts"
import { knownMemberId, rememberMember, removeFormer, type StaticMembers } from "./staticMembers.ts"
import { pollTopics } from "./topicPoller.ts"

/** Leaves the group. A static member of the classic protocol stays: it is expected back. */
const leave = ({ cluster, membership, settings }: SessionState, abandoned: AbandonedMembers) =>
  Effect.suspend(() => {
    const leave = membership.leaving()
    return leave === undefined
      ? Effect.void
      : leaveOrRemember(cluster, abandoned, { groupId: settings.groupId, memberId: membership.memberId(), leave })
  })

/** A pause that is longer than this may have hidden that a topic was deleted. Shorter ones are frequent: a full buffer makes them. */
const unfetchedMillis = 2_000

/** The commands of the port. */
const commands = (session: SessionState, errors: BrokerErrors): Broker.ConsumerSession => {
  const { cluster, events, fetcher, membership, ownership, settings } = session
  const { groupId, groupInstanceId } = settings
  const commit = makeCommit(cluster, groupId, ownership, membership)
  const subject = { operation: "commit", groupId, groupInstanceId: groupInstanceId ?? undefined }
  return {
    events,
    clusterId: cluster.id,
    pause: (partitions) => Effect.sync(() => ownership.pause(partitions, performance.now())),
    resume: (partitions) =>
      Effect.sync(() => {
        const nowMillis = performance.now()
        const pausedLong = ownership.resume(partitions, nowMillis - unfetchedMillis)
        // Nothing was fetched that could have told that the topic was deleted, and made again.
        if (pausedLong) session.pollNow.openUnsafe()
        fetcher.wake()
      }),
    seek: (partition, offset) =>
      Effect.sync(() => {
        if (!ownership.seek(partition, offset)) return
        discardChunks(session, partition)
        fetcher.wake()
      }),
    commit: (offsets) =>
      Effect.mapError(commit(offsets), (failed) =>
        failed._tag === "ClientFailure" ? errors.of(failed, subject) : failed
      ),
    groupMetadata: makeGroupMetadata(session),
    isUnconfirmed: membership.isUnconfirmed
  }
}

const membershipOf = (
  cluster: Cluster,
  settings: SessionSettings,
  ownership: Ownership,
  statics: StaticMembers,
  session: () => SessionState
): Membership => {
  const listener: MembershipListener = {
    assigned: (generation, partitions) => onAssigned(session(), generation, partitions),
    lost: () => loseAll(session()),
    giveUp: Effect.suspend(() => giveUpAll(session())),
    topicIds: Effect.suspend(() => lookUpTopicIds(session()))
  }
  return settings.groupProtocol === "consumer"
    ? makeConsumerMembership(cluster, settings, ownership, listener)
    : makeClassicMembership(cluster, settings, ownership, knownMemberId(statics, settings), listener)
}

/** The state that all sessions of a client share. */
export interface Members {
  readonly abandoned: AbandonedMembers
  readonly statics: StaticMembers
}

/** Joins a group and fetches until the scope closes, or until a failure that joining again does not cure. */
export const makeConsumerSession = Effect.fnUntraced(function* (
  options: SecuredOptions,
  errors: BrokerErrors,
  { abandoned, statics }: Members,
  consumer: Broker.ConsumerOptions
) {
  const settings = sessionSettings(consumer)
  const subject = { operation: "consume", groupId: settings.groupId, groupInstanceId: consumer.groupInstanceId }
  const connectTo = (to: SecuredOptions) => connect(to, consumer.clientId, { isSupervised: true })
  const [memberCluster, cluster] = yield* errors.map(
    Effect.all([connectTo(memberConnection(options, settings)), connectTo(options)], { concurrency: "unbounded" }),
    { ...subject, operation: "connect" }
  )
  const scope = yield* Effect.scope
  const context = yield* Effect.context<never>()
  const events = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
  const failure = yield* Deferred.make<never, BrokerError.BrokerError>()
  const ownership = new Ownership()
  const failSession: SessionState["failSession"] = (failed, topic = settings.topics.join(", ")) =>
    Effect.asVoid(Deferred.fail(failure, errors.of(failed, { ...subject, topic })))

  /** A partition whose look-up died would wait for ever, and nobody would learn of it. */
  const diedOf = (defect: unknown) => failSession(fromThrown(defect))

  const topics = noTopicsKnown()
  const session: SessionState = {
    settings,
    cluster,
    ownership,
    events,
    failSession,
    fork: (effect) => void Effect.runForkWith(context)(Effect.forkIn(Effect.catchDefect(effect, diedOf), scope)),
    fetcher: makeFetcher(cluster, settings, ownership, topics.topicIds, scope, {
      emit: (event) => emit({ events }, event),
      taken: awaitTaken(events),
      failSession,
      topicDeleted: (topic) => onTopicDeleted(session, topic),
      topicChanged: () => session.pollNow.openUnsafe()
    }),
    membership: membershipOf(memberCluster, settings, ownership, statics, () => session),
    ...topics
  }

  let isFailed = false
  const end = (reason: BrokerError.BrokerError) =>
    Effect.andThen(
      Effect.sync(() => {
        loseAll(session)
        isFailed = true
        rememberMember(statics, settings, reason._tag === "InstanceFenced" ? undefined : session.membership.memberId())
        Queue.failCauseUnsafe(events, Cause.fail(reason))
      }),
      leave(session, abandoned)
    )
  yield* Effect.addFinalizer(() => {
    ownership.clear()
    if (!isFailed) rememberMember(statics, settings, undefined)
    return Effect.andThen(leave(session, abandoned), Queue.shutdown(events))
  })
  const topicsMaxAgeMillis = Ranges.millisOf(options.metadataMaxAge ?? defaults.metadataMaxAgeMillis)
  const belong = removeAbandoned(cluster, abandoned, settings.groupId).pipe(
    Effect.andThen(removeFormer(cluster, statics, settings)),
    Effect.andThen(session.membership.run)
  )
  yield* Effect.raceAllFirst([
    errors.map(defectAsFailure(pollTopics(session, topicsMaxAgeMillis)), subject),
    errors.map(defectAsFailure(belong), subject),
    Deferred.await(failure)
  ]).pipe(Effect.catch(end), Effect.forkScoped)
  return commands(session, errors)
})
