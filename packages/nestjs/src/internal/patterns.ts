/** The patterns that `@EventPattern` may have. */
import type { EventBusError } from "@eventbus/node"

/** Kafka's own rule for the names of topics. */
const topicName = /^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$/

/** The mistake in a pattern. Undefined for the name of a topic. */
export const issueOf = (pattern: unknown, isEventHandler: boolean): EventBusError.ConfigurationIssue | undefined => {
  const text = textOf(pattern)
  if (!isEventHandler)
    return {
      path: `@MessagePattern(${text})`,
      found: "a request that waits for a reply",
      allowed:
        "@EventPattern: retries and dead letters have no reply. Keep requests on Nest's own transport in a process of their own"
    }
  if (typeof pattern === "string" && topicName.test(pattern)) return undefined
  return {
    path: `@EventPattern(${text})`,
    found: pattern instanceof RegExp ? "a regular expression" : "no name of a topic",
    allowed: "the name of one Kafka topic: a-z, A-Z, 0-9, '.', '_' and '-'; wildcards are not supported"
  }
}

const textOf = (pattern: unknown): string =>
  pattern instanceof RegExp ? String(pattern) : (JSON.stringify(pattern) ?? String(pattern))
