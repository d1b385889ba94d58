/** The settings that `groupProtocol: "consumer"` refuses: the group and the brokers configure them (KIP-848), and a value here would have no effect. */
import * as Defaults from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import { shown } from "../base/shown.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

const { sessionTimeoutMillis, heartbeatIntervalMillis, partitionAssignmentStrategy } = Defaults.binding

const refused = (path: string, found: unknown, allowed: string, reason: string): ConfigurationIssue => ({
  path,
  found: typeof found === "string" ? found : shown(found),
  allowed: `${allowed} with groupProtocol "consumer": ${reason}`
})

/** A time of the binding that the group configures as `consumer.{name}`. */
const timing = (
  path: string,
  foundMillis: number,
  defaultMillis: number,
  name: string
): ReadonlyArray<ConfigurationIssue> => {
  const reason = `the group configures it (consumer.${name}, and group.consumer.${name} of the brokers)`
  return foundMillis === defaultMillis ? [] : [refused(path, `${foundMillis} ms`, "the default", reason)]
}

/** Empty for a binding of the classic protocol. */
export const problems = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> => {
  if (definition.groupProtocol !== "consumer") return []
  const listed = definition.partitionAssignmentStrategy
  const isOwn = listed.length === 1 && listed[0] === partitionAssignmentStrategy[0]
  return [
    ...timing("sessionTimeout", definition.sessionTimeoutMillis, sessionTimeoutMillis, "session.timeout.ms"),
    ...timing(
      "heartbeatInterval",
      definition.heartbeatIntervalMillis,
      heartbeatIntervalMillis,
      "heartbeat.interval.ms"
    ),
    ...(isOwn
      ? []
      : [
          refused(
            "partitionAssignmentStrategy",
            listed,
            `["${partitionAssignmentStrategy[0]}"]`,
            "the broker assigns (group.consumer.assignors of the brokers)"
          )
        ])
  ]
}
