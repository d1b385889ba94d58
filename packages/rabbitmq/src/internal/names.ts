/**
 * The names of exchanges and queues.
 *
 * A queue's name has its topic and its group, parted by a colon. Colons inside of them are escaped, so that no two of them share a queue.
 */

import type { Naming } from "@eventbus/messaging/MessageConsumer"

/** Names under the prefixes of a program. */
export interface Names {
  /** The exchange of a topic. */
  readonly exchange: (topic: string) => string
  /** The queue of a group. All groups that read a dead letter topic share its queue, since a dead letter is in one place. */
  readonly queue: (topic: string, groupId: string) => string
  /** The queue of the dead letters of a topic that ends in `-dlq`. */
  readonly deadLetters: (deadLetterTopic: string) => string
}

/** The topic of a group's dead letters, which groups share unless they are named by group. */
export const deadLetterTopic = (topic: string, groupId: string, naming: Naming): string =>
  naming === "group" ? `${topic}-${groupId}-dlq` : `${topic}-dlq`

export const isDeadLetterTopic = (topic: string): boolean => topic.endsWith("-dlq")

/** The queue in which messages of a queue wait so many milliseconds. */
export const retryQueue = (queue: string, wait: number): string => `${retryQueues(queue)}${wait}`

/** The beginning of the names of a queue's retry queues. */
export const retryQueues = (queue: string): string => `${queue}:retry:`

const escaped = (text: string): string => text.replaceAll("%", "%25").replaceAll(":", "%3A")

export const makeNames = (prefixes: { readonly exchangePrefix: string; readonly queuePrefix: string }): Names => {
  const deadLetters = (topic: string) => `${prefixes.queuePrefix}.${escaped(topic)}`
  return {
    exchange: (topic) => `${prefixes.exchangePrefix}.${topic}`,
    queue: (topic, groupId) =>
      isDeadLetterTopic(topic) ? deadLetters(topic) : `${prefixes.queuePrefix}.${escaped(topic)}:${escaped(groupId)}`,
    deadLetters
  }
}
