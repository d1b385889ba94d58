/** The mistakes in the options of a transport that only show beside the topics that controllers handle. */
import type { EventBusError } from "@eventbus/node"
import type { TopicOptions } from "../TopicOptions.ts"

interface Given {
  readonly sharedConsumer?: string
  readonly topics?: { readonly [topic: string]: TopicOptions }
}

export const issuesOf = (
  { sharedConsumer, topics = {} }: Given,
  handled: ReadonlyArray<string>
): ReadonlyArray<EventBusError.ConfigurationIssue> =>
  Object.keys(topics).flatMap((topic) => {
    const path = `EventBusTransport.topics.${topic}`
    if (sharedConsumer !== undefined)
      return [
        {
          path,
          found: "options of one topic beside sharedConsumer",
          allowed: "options of all topics in `consumer`: one consumer has one set of them"
        }
      ]
    if (handled.includes(topic)) return []
    return [
      {
        path,
        found: "a topic without @EventPattern",
        allowed: handled.join(", ") || "none: no controller has @EventPattern"
      }
    ]
  })
