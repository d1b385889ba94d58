/**
 * Looks at the topics of a binding when one of its consumers has started. Its first records do not wait for that.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Acls from "../checks/acls.ts"
import * as ForeignGroups from "../checks/foreignGroups.ts"
import type { ConsumerContext } from "../delivery/consumerContext.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { BindingFailures } from "../observe/ongoingFailures.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"
import * as RemovedTiers from "./removedTiers.ts"

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

/** A topic of a consumer cannot be used: health says so until the request works, and an event does. */
export const unavailable = (
  {
    definition,
    consumer,
    hub,
    failures
  }: Pick<ConsumerContext<unknown>, "definition" | "consumer" | "hub" | "failures">,
  topic: string,
  error: BrokerError,
  request = topic
): void => {
  failures.topics.failed(request, error)
  hub.emit({ _tag: "TopicUnavailable", ...BindingKey.onEvent(definition), consumer, topic, error })
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
  const self = { definition, consumer: index, hub, failures }
  const { concurrency } = definition
  const topics = Sources.topicsOf(definition)
  if (!topics.every((topic) => subscription.topics.includes(topic))) return Effect.void
  const inspect = Effect.gen(function* () {
    const admin = yield* broker.admin
    const found: Array<{ readonly topic: string; readonly partitions: number }> = []
    for (const topic of topics) {
      const described = yield* Effect.result(admin.describeTopic(topic))
      if (Result.isFailure(described)) unavailable(self, topic, described.failure)
      else found.push({ topic, partitions: described.success.partitions })
    }
    if (index > 0 || found.length < topics.length) return
    // A consumer works as long as one of the topics has a partition for it.
    const most = found.reduce((all, each) => (each.partitions > all.partitions ? each : all))
    if (concurrency > most.partitions) hub.emit({ _tag: "ConsumersIdle", ...of, ...most, concurrency })
    const acls = yield* Acls.findMissing(admin, Acls.topicsOf(definition), Acls.groupsOf(definition))
    if (acls.length > 0) hub.emit({ _tag: "AclsMissing", ...of, acls })
    yield* Effect.sleep(startMillis)
    const shared = yield* ForeignGroups.find(admin, Sources.derivedOf(definition), definition)
    if (shared.length > 0) hub.emit({ _tag: "TopicsShared", ...of, shared })
  })
  const onFound = (topic: string, error: BrokerError) => unavailable(self, topic, error)
  return Effect.andThen(
    Effect.catch(Effect.scoped(inspect), (error) => Effect.sync(() => onFound(definition.topic, error))),
    index > 0 ? Effect.void : RemovedTiers.look({ definition, broker, failures, onFound })
  )
}
