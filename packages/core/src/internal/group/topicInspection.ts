/**
 * Looks at the topics of a binding when one of its consumers has started. Its first records do not wait for that.
 */
import { Effect } from "effect"
import type { Broker } from "../../Broker.ts"
import * as Acls from "../checks/acls.ts"
import * as ForeignGroups from "../checks/foreignGroups.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { BindingFailures } from "../observe/ongoingFailures.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"

/** The look for other groups fetches records. It begins when the first records of the binding itself have been fetched. */
const startMillis = 1_000

/** The consumer that has started. */
export interface StartedConsumer {
  readonly definition: BindingDefinition<unknown>
  readonly index: number
  readonly broker: Broker["Service"]
  readonly hub: EventHub
  readonly failures: BindingFailures
  readonly subscription: { readonly topics: ReadonlyArray<string> }
}

/** Reports what would otherwise only show as silence: a missing topic, consumers without a partition, missing ACLs, other groups in the same topics. */
export const inspectTopics = ({
  broker,
  definition,
  index,
  hub,
  failures,
  subscription
}: StartedConsumer): Effect.Effect<void> => {
  const of = { ...BindingKey.onEvent(definition), consumer: index }
  const { topic, concurrency } = definition
  if (!subscription.topics.includes(topic)) return Effect.void
  const inspect = Effect.gen(function* () {
    const admin = yield* broker.admin
    const { partitions } = yield* admin.describeTopic(topic)
    if (index > 0) return
    if (concurrency > partitions) hub.emit({ _tag: "ConsumersIdle", ...of, topic, concurrency, partitions })
    const acls = yield* Acls.findMissing(admin, Acls.topicsOf(definition), Acls.groupsOf(definition))
    if (acls.length > 0) hub.emit({ _tag: "AclsMissing", ...of, acls })
    yield* Effect.sleep(startMillis)
    const derived = [...definition.tiers.topics.map((tier) => tier.topic), definition.deadLetterTopic]
    const shared = yield* ForeignGroups.find(admin, derived, definition)
    if (shared.length > 0) hub.emit({ _tag: "TopicsShared", ...of, shared })
  })
  return Effect.catch(Effect.scoped(inspect), (error) =>
    Effect.sync(() => {
      failures.topics.failed(topic, error)
      hub.emit({ _tag: "TopicUnavailable", ...of, topic, error })
    })
  )
}
