/** A session of a consumer in which something throws. */
import { assert, it } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Cause, Clock, Duration, Effect, Exit, Queue } from "effect"

KafkaSuite.shared("a session in which something throws", (bootstrap) => {
  it.live(
    "ruling 86: a defect of its membership ends the session, so that a new one is made, and is no silence for ever",
    () =>
      Effect.gen(function* () {
        const topic = `session-defect-${Date.now()}`
        const broker = KafkaJs.make({ brokers: bootstrap })
        const admin = yield* broker.admin
        yield* admin.createTopics([{ topic, partitions: 1, replicationFactor: 1 }])
        const clock = yield* Clock.Clock
        let isBroken = false
        const own: Clock.Clock = Object.create(clock, {
          sleep: {
            value: (duration: Parameters<Clock.Clock["sleep"]>[0]) => {
              if (isBroken) throw new Error("a bug")
              return clock.sleep(duration)
            }
          }
        })
        const session = yield* Effect.provideService(
          broker.consumer({
            groupId: topic,
            topics: [topic],
            heartbeatInterval: "300 millis",
            sessionTimeout: "6 seconds"
          }),
          Clock.Clock,
          own
        )
        assert.strictEqual((yield* Queue.take(session.events))._tag, "Assigned")
        isBroken = true
        const ended = yield* Effect.exit(Effect.timeout(Effect.forever(Queue.take(session.events)), "10 seconds"))
        isBroken = false
        assert(Exit.isFailure(ended))
        assert.strictEqual((Cause.squash(ended.cause) as { readonly _tag?: string })._tag, "UnexpectedBrokerError")
      }).pipe(Effect.scoped),
    60_000
  )

  it.live(
    "ruling 86: a defect of a fiber that the session starts for one revocation ends the session, too",
    () =>
      Effect.gen(function* () {
        const topic = `session-fiber-defect-${Date.now()}`
        const broker = KafkaJs.make({ brokers: bootstrap })
        const admin = yield* broker.admin
        yield* admin.createTopics([{ topic, partitions: 2, replicationFactor: 1 }])
        const clock = yield* Clock.Clock
        const own: Clock.Clock = Object.create(clock, {
          sleep: {
            value: (duration: Parameters<Clock.Clock["sleep"]>[0]) => {
              // The rebalance timeout, for which only a revocation sleeps.
              if (Duration.toMillis(duration) === 47_123) throw new Error("a bug")
              return clock.sleep(duration)
            }
          }
        })
        const options = {
          groupId: topic,
          topics: [topic],
          heartbeatInterval: "300 millis",
          sessionTimeout: "6 seconds"
        } as const
        const session = yield* Effect.provideService(
          broker.consumer({ ...options, rebalanceTimeout: 47_123 }),
          Clock.Clock,
          own
        )
        assert.strictEqual((yield* Queue.take(session.events))._tag, "Assigned")
        yield* broker.consumer(options)
        const ended = yield* Effect.exit(Effect.timeout(Effect.forever(Queue.take(session.events)), "15 seconds"))
        assert(Exit.isFailure(ended))
        assert.strictEqual((Cause.squash(ended.cause) as { readonly _tag?: string })._tag, "UnexpectedBrokerError")
      }).pipe(Effect.scoped),
    60_000
  )
})
