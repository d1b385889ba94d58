/** The topic of the audit log. Kafka gives the times, so that no writer forges them. */
import type { OwnTopic } from "../publish/ownTopic.ts"

export const of = (topic: string): OwnTopic => ({
  topic,
  required: { "cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime" },
  // A year.
  recommended: { "retention.ms": "31536000000" }
})
