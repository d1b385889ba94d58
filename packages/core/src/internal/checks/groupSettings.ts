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

const ofGroup = (name: string) => `the group configures it (${name}, and group.${name} of the brokers)`

/** Empty for a binding of the classic protocol. */
export const problems = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> => {
  if (definition.groupProtocol !== "consumer") return []
  const listed = definition.partitionAssignmentStrategy
  const isOwn = listed.length === 1 && listed[0] === partitionAssignmentStrategy[0]
  return [
    ...(definition.sessionTimeoutMillis === sessionTimeoutMillis
      ? []
      : [
          refused(
            "sessionTimeout",
            `${definition.sessionTimeoutMillis} ms`,
            "the default",
            ofGroup("consumer.session.timeout.ms")
          )
        ]),
    ...(definition.heartbeatIntervalMillis === heartbeatIntervalMillis
      ? []
      : [
          refused(
            "heartbeatInterval",
            `${definition.heartbeatIntervalMillis} ms`,
            "the default",
            ofGroup("consumer.heartbeat.interval.ms")
          )
        ]),
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
