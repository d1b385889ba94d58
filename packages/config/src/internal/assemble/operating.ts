/** The fleet and the audit log of a configuration. A file without clusters may name one that the program does not have: that is a mistake in the file. */
import { Audit, EventBusError, Fleet } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

interface Operating {
  readonly fleet?: Fleet.Settings
  readonly audit?: Audit.Settings
}

/** The layer, as a process of the fleet, beside the audit log. */
export const layer = <A, E, R>({ fleet, audit }: Operating, connector: Layer.Layer<A, E, R>) => {
  const joined =
    fleet === undefined ? connector : Layer.provideMerge(connector, asIssueOf("eventbus.fleet", Fleet.layer(fleet)))
  return audit === undefined ? joined : Layer.merge(joined, asIssueOf("eventbus.audit", Audit.layer(audit)))
}

const asIssueOf = <A, R>(section: string, layer: Layer.Layer<A, EventBusError.UnknownCluster, R>) =>
  Layer.catchTag(layer, "UnknownCluster", ({ cluster, known }) => {
    const issue = {
      path: `${section}.cluster`,
      found: JSON.stringify(cluster),
      allowed: `one of ${known.join(", ")}`
    }
    return Layer.effectDiscard(Effect.fail(new EventBusError.ConfigurationValidation({ issues: [issue] })))
  })
