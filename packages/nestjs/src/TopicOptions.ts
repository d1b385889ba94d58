/** The options of a topic whose records controllers handle. */
import type { CommonOptions } from "@eventbus/node"

// biome-ignore lint/suspicious/noExplicitAny: each topic has types of its own, which its controllers state
type Anything = any

/**
 * The options of the consumer of a topic: all those of `@eventbus/node`, but the topic. With `value` the payload is what the serde reads, and a value that it refuses is
 * dead-lettered; without it Nest's own parser reads the payload.
 */
export type TopicOptions = Partial<Omit<CommonOptions<Anything, Anything>, "topic">>
