/** Commits of a session. */
import { type Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import { isCoordinatorFailure } from "../wire/failures.ts"
import { coordinatorCache } from "./coordinatorCache.ts"
import type { Membership } from "./membership.ts"
import type { Ownership } from "./ownership.ts"

const staleEpoch = "STALE_MEMBER_EPOCH"

/** The identity of the commit is over. */
const isOver = new Set(["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", staleEpoch])

const rebalancing = failure("REBALANCE_IN_PROGRESS", "the generation is over")

/** Partition keys of the offsets whose assignment is over. */
export const staleKeys = (ownership: Ownership, offsets: ReadonlyArray<Broker.Assignment>): ReadonlyArray<string> =>
  offsets.flatMap((offset) =>
    ownership.get(offset)?.generation === offset.generation
      ? []
      : [ConsumerRecord.partitionKey(offset.topic, offset.partition)]
  )

/** A heartbeat that changes the member's epoch is on its way while a commit names the former one. */
const epochIsOnItsWay = {
  schedule: Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(50)]),
  while: (failed: ClientFailure | BrokerError.StaleAssignment) =>
    failed._tag === "ClientFailure" && failed.type === staleEpoch
}

/** Commits for the current member. When an assignment is over, fails with `StaleAssignment` and sends nothing. */
export const makeCommit = (cluster: Cluster, groupId: string, ownership: Ownership, membership: Membership) => {
  const coordinator = coordinatorCache(cluster, groupId)
  return (offsets: ReadonlyArray<Broker.OffsetCommit>) =>
    Effect.suspend((): Effect.Effect<void, ClientFailure | BrokerError.StaleAssignment> => {
      if (offsets.length === 0) return Effect.void
      const partitions = staleKeys(ownership, offsets)
      if (partitions.length > 0) return Effect.fail(new BrokerError.StaleAssignment({ groupId, partitions }))
      const identity = membership.identity()
      if (identity === undefined) return Effect.fail(rebalancing)
      return coordinator
        .ask((broker) => membership.sendCommit(broker, identity, offsets))
        .pipe(
          Effect.tapError((failed) =>
            Effect.sync(() => {
              if (isCoordinatorFailure(failed.type)) coordinator.forget()
              membership.heartbeatNow()
            })
          )
        )
    }).pipe(
      Effect.retry(epochIsOnItsWay),
      // The group has a newer generation, or the member is out; the member's loop finds out. The caller may retry: the retry is checked against
      // what is owned then.
      Effect.mapError((failed) => (failed._tag === "ClientFailure" && isOver.has(failed.type) ? rebalancing : failed))
    )
}
