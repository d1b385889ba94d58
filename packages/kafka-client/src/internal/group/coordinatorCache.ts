/** The coordinator of a group, looked up once and kept, and the contact of a member with it. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type ClientFailure, Local } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"
import * as RetryBackoff from "../connection/retryBackoff.ts"
import { isCoordinatorFailure } from "../wire/failures.ts"

export interface CoordinatorCache {
  /**
   * Runs a request to the coordinator. Looks it up when it is unknown or its connection is closed. Fails when another node becomes the coordinator
   * before it answers.
   */
  readonly ask: <A>(
    request: (coordinator: NodeClient) => Effect.Effect<A, ClientFailure>
  ) => Effect.Effect<A, ClientFailure>
  /** The coordinator has moved, or does not answer. */
  readonly forget: () => void
}

export const coordinatorCache = (cluster: Cluster, groupId: string): CoordinatorCache => {
  let coordinator: NodeClient | undefined
  const get = Effect.suspend(() =>
    coordinator?.isConnected()
      ? Effect.succeed(coordinator)
      : Effect.tap(cluster.coordinator("group", groupId), (found) =>
          Effect.sync(() => {
            coordinator = found
          })
        )
  )
  return {
    ask: (request) =>
      Effect.flatMap(get, (broker) => cluster.whileCoordinator("group", groupId, broker, request(broker))),
    forget: () => {
      coordinator = undefined
    }
  }
}

/** The contact of a member with its coordinator. */
export interface Contact {
  readonly coordinator: CoordinatorCache
  /** Epoch milliseconds of the coordinator's last answer. */
  lastContactMillis: number
  /** Failures since then. */
  failures: number
}

/** True for failures of the way to the coordinator: the member is still one. */
export const isTransient = ({ type }: ClientFailure): boolean => isCoordinatorFailure(type) || type === Local.timeout

export const noteContact = (contact: Contact): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    contact.lastContactMillis = now
    contact.failures = 0
  })

export const silentMillis = ({ lastContactMillis }: Contact): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (now) => now - lastContactMillis)

/** Waits before the coordinator is looked up and asked again. When it has been silent for longer than `limitMillis`, drops the membership and fails. */
export const awaitCoordinator = Effect.fnUntraced(function* (
  contact: Contact,
  failed: ClientFailure,
  limitMillis: number,
  dropMembership: Effect.Effect<void>
) {
  contact.coordinator.forget()
  if ((yield* silentMillis(contact)) > limitMillis) {
    yield* dropMembership
    return yield* Effect.fail(failed)
  }
  yield* Effect.sleep(RetryBackoff.delayMillis(contact.failures++))
})
