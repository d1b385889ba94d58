/** The protocol by which the members of a group share its partitions. */
import type * as Choices from "../../Choices.ts"

/**
 * Kafka: `group.protocol`. `classic`: one member assigns, and all members join again for it. `consumer` (KIP-848, Apache Kafka 4.0): the broker assigns, and each member gives up
 * and takes over partitions by itself.
 */
export type GroupProtocol = (typeof Choices.binding.groupProtocol)[number]
