/** The keys below `eventbus.fleet` and `eventbus.audit`: what operators have of the process. */
import { Choices, Defaults, Ranges } from "@eventbus/core"
import * as Schema from "effect/Schema"
import { duration, oneOf, section, text, topicName, withDefault } from "./leaves.ts"

/** The fleet that the process joins. */
export const Fleet = section(
  "Holds and commands for all processes at once. Without this section the process joins no fleet.",
  {
    cluster: text("The alias of the cluster that has both topics.").pipe(withDefault(Defaults.binding.cluster)),
    controlTopic: topicName("The topic of holds and commands, which operators write.").pipe(
      withDefault(Defaults.fleet.controlTopic)
    ),
    fleetTopic: topicName("The topic of heartbeats and answers, which processes write.").pipe(
      withDefault(Defaults.fleet.fleetTopic)
    ),
    onControlUnavailable: oneOf(
      "What the bindings of a process do that cannot read the control topic when it starts.",
      Choices.fleet.onControlUnavailable
    ).pipe(withDefault(Defaults.fleet.onControlUnavailable)),
    controlTimeoutMs: duration(
      "How long a process waits for the control topic when it starts. Until then it fetches no record.",
      Ranges.fleet.controlTimeout
    ).pipe(withDefault(Defaults.fleet.controlTimeoutMillis)),
    version: Schema.optionalKey(text("The version of the application, for operators."))
  }
)

/** The audit log of operators' actions. */
export const Audit = section(
  "An audit log of who did what, why and with which outcome. Without this section nothing is audited.",
  {
    cluster: text("The alias of the cluster that has the topic.").pipe(withDefault(Defaults.binding.cluster)),
    topic: topicName("The topic of the entries.").pipe(withDefault(Defaults.audit.topic)),
    whenUnwritable: oneOf(
      "What becomes of an action whose entry cannot be written.",
      Choices.audit.whenUnwritable
    ).pipe(withDefault(Defaults.audit.whenUnwritable)),
    timeoutMs: duration("How long an entry may take to be acknowledged.", Ranges.audit.timeout).pipe(
      withDefault(Defaults.audit.timeoutMillis)
    )
  }
)
