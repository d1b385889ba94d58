/** The kinds of the options of a relay. */
import { Kinds, TopicName } from "@eventbus/core"

const topicName: Kinds.Kind = (path, found) => {
  if (typeof found !== "string") return Kinds.make("a topic name", () => false)(path, found)
  const reason = TopicName.illegal(found)
  return reason === undefined ? [] : [{ path, found: `'${found}'`, allowed: `a topic name: ${reason}` }]
}

const byEventType: Kinds.Kind = (path, found) =>
  [...(found as ReadonlyMap<unknown, unknown>)].flatMap(([eventType, topic]) => {
    const issues = Kinds.string(`${path} (event type)`, eventType)
    return issues.length > 0 ? issues : topicName(`${path}.${eventType}`, topic)
  })

const topic: Kinds.Kind = (path, found) => {
  if (typeof found === "string") return topicName(path, found)
  if (isMap(found)) return byEventType(path, found)
  return Kinds.make("a topic name, a Map from event types to topic names, or a function", isFunction)(path, found)
}

const isFunction = (value: unknown): boolean => typeof value === "function"

/** A Proxy may throw when it is asked. */
const isMap = (value: unknown): boolean => {
  try {
    return value instanceof Map
  } catch {
    return false
  }
}

const cloudEvents = Kinds.struct(
  {},
  { _tag: Kinds.oneOf(["cloudevents"]), source: Kinds.name },
  '"plain", or { _tag: "cloudevents", source }'
)

/** All options but those of the producer, which `Adapter` checks. */
export const relayKinds = {
  topic,
  key: Kinds.func,
  format: (path: string, found: unknown) => (found === "plain" ? [] : cloudEvents(path, found)),
  missingTopics: Kinds.oneOf(["wait", "create", "require"]),
  timestamp: Kinds.oneOf(["published", "occurred"])
} as const
