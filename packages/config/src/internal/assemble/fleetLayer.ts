/** The fleet of a configuration. A file without clusters may name one that the program does not have: that is a mistake in the file. */
import { EventBusError, Fleet } from "@eventbus/core"
import { Effect, Layer } from "effect"

export const make = (settings: Fleet.Settings) =>
  Layer.catchTag(Fleet.layer(settings), "UnknownCluster", ({ cluster, known }) => {
    const issue = {
      path: "eventbus.fleet.cluster",
      found: JSON.stringify(cluster),
      allowed: `one of ${known.join(", ")}`
    }
    return Layer.effectDiscard(Effect.fail(new EventBusError.ConfigurationValidation({ issues: [issue] })))
  })
