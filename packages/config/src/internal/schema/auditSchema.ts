/** The keys below `eventbus.audit`. */
import { Choices, Defaults, Ranges } from "@eventbus/core"
import { duration, oneOf, section, text, topicName, withDefault } from "./leaves.ts"

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
