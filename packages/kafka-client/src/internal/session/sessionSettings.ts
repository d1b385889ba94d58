/** The settings of one session: the port's options with their defaults, in milliseconds. */
import { Adapter, type Broker, Defaults, Ranges } from "@eventbus/core"
import * as Duration from "effect/Duration"
import { defaults } from "../connection/options.ts"
import type { SecuredOptions } from "../connection/security.ts"
import type { FetcherOptions } from "../fetch/fetchRequest.ts"
import type { MembershipOptions } from "../group/memberRequests.ts"

export interface SessionSettings extends MembershipOptions, FetcherOptions {
  /** Former `group.instance.id`s of this member. */
  readonly replacesGroupInstanceIds: ReadonlyArray<string>
  readonly groupProtocol: Broker.GroupProtocol
}

export const sessionSettings = (options: Broker.ConsumerOptions): SessionSettings => {
  const sessionTimeoutMillis = Duration.toMillis(options.sessionTimeout ?? "45 seconds")
  return {
    groupId: options.groupId,
    groupInstanceId: options.groupInstanceId ?? null,
    groupProtocol: options.groupProtocol ?? Defaults.binding.groupProtocol,
    replacesGroupInstanceIds: options.replacesGroupInstanceIds ?? [],
    topics: [...new Set(options.topics)],
    partitionAssignmentStrategy: options.partitionAssignmentStrategy ?? Defaults.binding.partitionAssignmentStrategy,
    copartitionedTopics: options.copartitionedTopics ?? [],
    sessionTimeoutMillis,
    rebalanceTimeoutMillis: Duration.toMillis(options.rebalanceTimeout ?? "60 seconds"),
    heartbeatIntervalMillis: Math.min(
      Duration.toMillis(options.heartbeatInterval ?? "10 seconds"),
      sessionTimeoutMillis / 3
    ),
    mayJoin: options.mayJoin ?? (() => true),
    maxWaitMillis: Duration.toMillis(options.fetchMaxWait ?? "100 millis"),
    maxRecordBytes: options.maxRecordBytes ?? Adapter.fetchDefaults.maxRecordBytes,
    maxBytesOf: (topic) => Adapter.maxFetchBytes(options, topic),
    isolation: options.isolationLevel ?? Adapter.fetchDefaults.isolationLevel
  }
}

/** Options of the member's own connections. A request that gets no answer ends after a third of the session, which leaves time for two more tries. */
export const memberConnection = (
  options: SecuredOptions,
  { sessionTimeoutMillis }: SessionSettings
): SecuredOptions => ({
  ...options,
  requestTimeout: Math.min(
    Ranges.millisOf(options.requestTimeout ?? defaults.requestTimeoutMillis),
    Math.max(1_000, sessionTimeoutMillis / 3)
  )
})
