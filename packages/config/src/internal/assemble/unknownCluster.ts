/** A file without clusters may name one that the program does not have: that is a mistake in the file. */
import { EventBusError } from "@eventbus/core"
import { Effect, Layer } from "effect"

/** The layer, where a cluster that is unknown is an issue of the section, such as `eventbus.fleet`. */
export const asIssueOf = <A, R>(
  section: string,
  layer: Layer.Layer<A, EventBusError.UnknownCluster, R>
): Layer.Layer<A, EventBusError.ConfigurationValidation, R> =>
  Layer.catchTag(layer, "UnknownCluster", ({ cluster, known }) => {
    const issue = {
      path: `${section}.cluster`,
      found: JSON.stringify(cluster),
      allowed: `one of ${known.join(", ")}`
    }
    return Layer.effectContext(Effect.fail(new EventBusError.ConfigurationValidation({ issues: [issue] })))
  })
