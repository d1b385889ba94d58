/** Commits of a session. */
import { type Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import { sendCommit } from "../offsets/committedOffsets.ts"
import { type ClientFailure, failure, isCoordinatorFailure } from "../wire/errors.ts"
import type { KafkaBroker } from "../wire/kafkajsInternals.ts"
import type { Membership } from "./membership.ts"
import type { Ownership } from "./ownership.ts"

const rebalancing = failure("REBALANCE_IN_PROGRESS", "the generation is over")

/** Commits for the current member, over a coordinator that is looked up once and again when it has moved. */
export const makeCommit = (cluster: Cluster, groupId: string, ownership: Ownership, membership: Membership) => {
  let coordinator: KafkaBroker | undefined
  const find = Effect.suspend(() =>
    coordinator?.isConnected()
      ? Effect.succeed(coordinator)
      : Effect.tap(cluster.coordinator("group", groupId), (found) =>
          Effect.sync(() => {
            coordinator = found
          })
        )
  )
  const stale = (offsets: ReadonlyArray<Broker.OffsetCommit>) =>
    offsets.flatMap((offset) =>
      ownership.get(offset)?.generation === offset.generation
        ? []
        : [ConsumerRecord.partitionKey(offset.topic, offset.partition)]
    )
  /** `refused` names the partitions whose assignment is over; nothing was sent for anyone then. */
  return (offsets: ReadonlyArray<Broker.OffsetCommit>) =>
    Effect.suspend((): Effect.Effect<void, ClientFailure | BrokerError.StaleAssignment> => {
      if (offsets.length === 0) return Effect.void
      const partitions = stale(offsets)
      if (partitions.length > 0) return Effect.fail(new BrokerError.StaleAssignment({ groupId, partitions }))
      const identity = membership.identity()
      if (identity === undefined) return Effect.fail(rebalancing)
      return Effect.flatMap(find, (broker) => sendCommit(broker, groupId, identity, offsets)).pipe(
        Effect.tapError((failed) =>
          Effect.sync(() => {
            if (isCoordinatorFailure(failed.type)) coordinator = undefined
            membership.hurry()
          })
        ),
        // the generation went on meanwhile, or the member is out: its own loop finds out; a repetition is checked against what is owned then
        Effect.mapError((failed) =>
          failed.type === "ILLEGAL_GENERATION" || failed.type === "UNKNOWN_MEMBER_ID" ? rebalancing : failed
        )
      )
    })
}
