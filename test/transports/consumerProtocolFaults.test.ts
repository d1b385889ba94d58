/** Members of groups that the broker assigns (KIP-848), on both transports, where an answer is lost, or a node says what is not so any more. */
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { ClientFailure, KafkaClient } from "@eventbus/kafka-client"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Logger, Queue } from "effect"
import * as Bus from "../integration/bus.ts"
import { type Alter, altered } from "./alteredTransport.ts"
import { type Tested, transports } from "./transports.ts"

const on = <A, E, R>(
  { name, open }: Tested,
  brokers: ReadonlyArray<string>,
  alter: Alter,
  effect: Effect.Effect<A, E, R>
) =>
  effect.pipe(
    Effect.scoped,
    Effect.provide(
      KafkaClient.layer(
        { name, transport: name.toLowerCase(), open: altered(open, alter) },
        { brokers: [...brokers], metadataMaxAge: "500 millis" }
      )
    )
  )

/** Joins, and takes events until some of the partitions are assigned. */
const join = Effect.fnUntraced(function* (name: string, groupInstanceId?: string) {
  const { events } = yield* (yield* Broker.Broker).consumer({
    ...{ groupId: name, topics: [name], groupProtocol: "consumer" },
    ...(groupInstanceId !== undefined && { groupInstanceId })
  })
  const next = (tag: "Assigned" | "Lost") =>
    Effect.repeat(Queue.take(events), {
      until: (event) => event._tag === tag && event.partitions.length > 0
    })
  return { next }
})

const heartbeat = "ConsumerGroupHeartbeat"

KafkaSuite.shared("a member that the broker assigns to", (brokers) => {
  describe.skipIf(!KafkaSuite.hasConsumerProtocol).each(transports)("$name", (transport) => {
    it.live(
      "CLN-10 CLN-13 a node that lags behind names another id of the topic: the member has its partitions back, which the broker does not assign twice",
      () => {
        const name = Bus.fresh("lagging")
        let isAsked = false
        const alter: Alter = async ({ apiName }, send) => {
          const answer = await send()
          if (!isAsked || apiName !== "Metadata" || !(answer instanceof Map)) return answer
          isAsked = false
          return new Map([[name, "AAAAAAAAAAAAAAAAAAAAAQ"]])
        }
        return Effect.gen(function* () {
          yield* Bus.createTopic(name, 2)
          const { next } = yield* join(name)
          yield* next("Assigned")
          isAsked = true
          yield* next("Lost")
          const again = yield* Effect.timeout(next("Assigned"), "10 seconds")
          assert.strictEqual(again._tag === "Assigned" && again.partitions.length, 2)
        }).pipe((test) => on(transport, brokers, alter, test))
      },
      30_000
    )

    it.live(
      "CLN-11 a static member whose join had no answer takes its own name back, and waits for no session to end",
      () => {
        const name = Bus.fresh("unanswered")
        const lines: Array<string> = []
        let joins = 0
        const alter: Alter = async ({ apiName }, send) => {
          const answer = await send()
          if (apiName === heartbeat && ++joins === 1)
            throw ClientFailure.failure(ClientFailure.Local.connection, "the answer is lost")
          return answer
        }
        return Effect.gen(function* () {
          yield* Bus.createTopic(name, 2)
          const startedAt = performance.now()
          const { next } = yield* join(name, "pod-0")
          yield* next("Assigned")
          // The group's session timeout in tests is 6 s.
          assert.isBelow(performance.now() - startedAt, 4_000)
          assert.deepStrictEqual(lines, [])
        }).pipe(
          Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])),
          (test) => on(transport, brokers, alter, test)
        )
      },
      30_000
    )
  })
})
