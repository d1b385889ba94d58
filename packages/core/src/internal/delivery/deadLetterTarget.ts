/**
 * The topic of a dead letter.
 */
import * as TopicName from "../../TopicName.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import type * as DeadLetterHeaders from "../record/deadLetterHeaders.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"

/** The topic that the binding's `topicFor` names, if it can be created and the binding does not read it; the binding's dead letter topic otherwise. */
export const deadLetterTarget = (
  definition: BindingDefinition<unknown>,
  { reason, failure, tier }: DeadLetterHeaders.DeadLetter
): string => {
  const { deadLetter, deadLetterTopic } = definition
  const { topicFor } = deadLetter.settings
  if (topicFor === undefined) return deadLetterTopic
  try {
    const { className: exceptionClass, message, tag } = failure
    const topic: unknown = UserFunction.plain("topicFor", topicFor({ reason, exceptionClass, message, tag, tier }))
    return typeof topic === "string" && TopicName.illegal(topic) === undefined && !isRead(definition, topic)
      ? topic
      : deadLetterTopic
  } catch (error) {
    UserFunction.report("topicFor", error)
    return deadLetterTopic
  }
}

/** A dead letter in a topic that the binding reads would come back as a new record, for ever. */
const isRead = (definition: BindingDefinition<unknown>, target: string): boolean =>
  [...Sources.topicsOf(definition), ...Sources.retryTopicsOf(definition)].some(
    (read) => read === target || DerivedNames.collide(read, target)
  )
