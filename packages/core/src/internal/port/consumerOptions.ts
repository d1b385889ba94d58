/** The options of a consumer session, as a part of the Broker port (`Broker.ts`). */
import type * as Duration from "effect/Duration"
import type { AssignmentStrategy } from "./assignmentStrategy.ts"
import type { GroupProtocol } from "./groupProtocol.ts"
import type { FetchOptions } from "./reader.ts"

/** How to join a group and fetch. */
export interface ConsumerOptions extends FetchOptions {
  /** Kafka: `group.id`. */
  readonly groupId: string
  /** Topics to subscribe to. A topic that does not exist (yet) is not an error of the session: it has no partitions until it does. */
  readonly topics: ReadonlyArray<string>
  /**
   * `group.protocol`. `classic`: the members assign. `consumer` (KIP-848, Apache Kafka 4.0): the broker assigns, and session timeout and heartbeat interval are configurations of the
   * group (`consumer.session.timeout.ms`, `consumer.heartbeat.interval.ms`): `sessionTimeout`, `heartbeatInterval`, `partitionAssignmentStrategy` and `copartitionedTopics` have
   * no effect. A session on a broker without it fails with `UNSUPPORTED_VERSION`. Default `classic`.
   */
  readonly groupProtocol?: GroupProtocol
  /**
   * `group.instance.id`: static membership (KIP-345). A session that closes then does not leave the group; it must come back within `sessionTimeout`. Of two sessions with one name
   * the older is fenced in the classic protocol, also when the group had removed its member before; in the consumer protocol the newer one waits until the older has closed, or
   * has expired.
   */
  readonly groupInstanceId?: string
  /**
   * Former `group.instance.id`s of this member, such as those of the first version. Before the adapter joins with `groupInstanceId` for the first time, it removes static
   * members of these names, so that what they own is free at once and not after their `sessionTimeout`. One that lives joins again. Default: none.
   */
  readonly replacesGroupInstanceIds?: ReadonlyArray<string>
  /**
   * Asked before the session joins its group as a new member: when it begins, and when the group has removed its member. When it answers false, the session stays outside until it
   * closes: a process that stops takes no partitions, and no name from its successor. A member that the group knows joins its next generations without being asked. Must not
   * throw. Default: always true.
   */
  readonly mayJoin?: () => boolean
  /**
   * `partition.assignment.strategy`: the assignment protocols that the member lists, the preferred one first. Kafka takes one that all members of the group list, and refuses
   * a member where there is none. A member that lists an eager one (all but `eventbus-cooperative-sticky` and `cooperative-sticky`) gives up all partitions before it joins
   * again, whichever protocol the group takes (ruling 80). Default: `eventbus-cooperative-sticky` alone.
   */
  readonly partitionAssignmentStrategy?: ReadonlyArray<AssignmentStrategy>
  /**
   * Topics whose partitions go together: each list names a source topic, then its followers, such as its retry topics. Partition p of each follower goes to the member that has
   * p of the source. Such a unit moves as a whole: its parts are revoked together, and given together once no other member holds a part. A part that the member holds
   * already stays. A follower's partition is assigned as by default where the source has no such number, or where the source's owner does not subscribe to the follower.
   * No topic stands twice.
   *
   * Members announce their lists when they join, and the leader respects those of every member. Only the protocol `eventbus-cooperative-sticky` honours them. A leader of a release
   * without this option assigns by topic; the next leader that knows it brings the units together. Default: none.
   */
  readonly copartitionedTopics?: ReadonlyArray<ReadonlyArray<string>>
  /** `session.timeout.ms`: a member that is silent for so long is removed. Default 45 seconds. */
  readonly sessionTimeout?: Duration.Input
  /** `rebalance.timeout.ms`: how long a member may take to give up revoked partitions. Default 60 seconds. */
  readonly rebalanceTimeout?: Duration.Input
  /** `heartbeat.interval.ms`; at most a third of `sessionTimeout`. Default 10 seconds. */
  readonly heartbeatInterval?: Duration.Input
  /**
   * `fetch.max.wait.ms`: how long the broker may hold a fetch without data; bounds how late a resume is noticed. Default 100 millis. While nothing is paused
   * an adapter may let it hold a fetch for 500 millis; after a pause, only for as long as that lasts already.
   */
  readonly fetchMaxWait?: Duration.Input
  /** Smaller bounds than `maxPartitionFetchBytes`, by topic. Default: none. */
  readonly maxBytesByTopic?: ReadonlyMap<string, number>
}
