/** The coordinator of a group, looked up once and kept. */
import { Effect } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import type { ClientFailure } from "../wire/clientFailure.ts"
import type { KafkaBroker } from "../wire/kafkajsInternals.ts"

export interface CoordinatorCache {
  /** Looks the coordinator up when it is unknown or its connection is closed. */
  readonly get: Effect.Effect<KafkaBroker, ClientFailure>
  /** The coordinator has moved, or does not answer. */
  readonly forget: () => void
}

export const coordinatorCache = (cluster: Cluster, groupId: string): CoordinatorCache => {
  let coordinator: KafkaBroker | undefined
  return {
    get: Effect.suspend(() =>
      coordinator?.isConnected()
        ? Effect.succeed(coordinator)
        : Effect.tap(cluster.coordinator("group", groupId), (found) =>
            Effect.sync(() => {
              coordinator = found
            })
          )
    ),
    forget: () => {
      coordinator = undefined
    }
  }
}
