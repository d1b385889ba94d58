import { Data, Effect } from "effect"
import { Kafka, type KafkaConfig, logLevel } from "kafkajs"

/** The broker does not answer, or does not know all members yet. */
class NotReady extends Data.TaggedError("NotReady")<{ readonly detail: string }> {}

const clientConfig = (broker: string): KafkaConfig => ({
  brokers: [broker],
  logLevel: logLevel.NOTHING,
  connectionTimeout: 2_000,
  requestTimeout: 5_000,
  retry: { retries: 0 }
})

/**
 * Succeeds when this broker answers on the brokers' own plain-text listener (all listeners open at once) and lists all of `members` and a controller.
 *
 * Another broker's answer is not enough: after a kill it lists the dead broker until that broker's session has timed out.
 */
export const describeCluster = (broker: string, members: ReadonlyArray<number>): Effect.Effect<void, NotReady> =>
  Effect.tryPromise({
    try: async () => {
      const admin = new Kafka(clientConfig(broker)).admin()
      try {
        await admin.connect()
        return await admin.describeCluster()
      } finally {
        await admin.disconnect()
      }
    },
    catch: (cause) => new NotReady({ detail: cause instanceof Error ? cause.message : String(cause) })
  }).pipe(
    Effect.flatMap((cluster) => {
      const present = cluster.brokers.map(({ nodeId }) => nodeId)
      return members.every((nodeId) => present.includes(nodeId)) && cluster.controller !== null
        ? Effect.void
        : Effect.fail(new NotReady({ detail: `${broker} knows the brokers ${present.join(", ") || "(none)"}` }))
    })
  )
