/**
 * The name of this host, which the connector puts into `x-eventbus-consumer-instance` and, for static members, into `group.instance.id`.
 *
 * Default: the environment variable `HOSTNAME`, else `localhost`. An adapter's layer provides the real one. Static members of one group on different
 * hosts need different names.
 */
import * as Context from "effect/Context"

/** The name of this host. Read when a binding starts. */
export const Hostname = Context.Reference<string>("@eventbus/core/Hostname", {
  defaultValue: () => globalThis.process?.env["HOSTNAME"] ?? "localhost"
})
