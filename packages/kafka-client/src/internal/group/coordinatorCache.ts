/** The coordinator of a group, looked up once and kept. */
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"

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
