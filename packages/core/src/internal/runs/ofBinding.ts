/** The plans and runs of a binding. */
import type { Broker } from "../../Broker.ts"
import * as Defaults from "../../Defaults.ts"
import type { Runs } from "../../ReplayRun.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as RunsOf from "./runs.ts"

export const make = (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"],
  hostname: string,
  isBreakerOpen: () => boolean
): Omit<Runs, "ofTopic"> => {
  const { deadLetter, deadLetterTopic, groupId, adopts, topic, tiers, maxBufferedBytes, transforms, serdes } =
    definition
  const { maxReplays = Defaults.deadLetter.maxReplays, origins, fingerprint } = deadLetter.settings
  const [firstTier] = tiers.topics
  return RunsOf.make({
    ...{ broker, groupId, adopts, deadLetterTopic, maxReplays, maxBufferedBytes, tiers, hostname, origins },
    ...{ sourceTopic: topic, ownsPosition: deadLetter._tag !== "Custom", ownFingerprint: fingerprint },
    ...{ transforms, serdes, isBreakerOpen },
    ordersKeys: definition.orderingMode === "PER_KEY",
    tierGroupId: firstTier === undefined ? groupId : Sources.groupOf(definition, firstTier.topic)
  })
}
