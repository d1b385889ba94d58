/** A plain producer that writes to the topic all the time, in order. A send that fails is repeated: what lies in the log counts, not how often it was sent. */
import { Broker } from "@eventbus/core"
import { Effect, Fiber, Schedule } from "effect"
import * as KeyedRecords from "./keyedRecords.ts"

const perBatch = 15
const every = "100 millis"

/** Answers what stops it, once the last send is acknowledged. */
export const start = Effect.fnUntraced(function* (topic: string) {
  const { sendAll } = yield* (yield* Broker.Broker).producer({ closeTimeout: "1 second" })
  let next = 0
  let writing = true
  const write = Effect.gen(function* () {
    while (writing) {
      const batch = Array.from({ length: perBatch }, () => KeyedRecords.record(topic, next++))
      yield* Effect.retry(sendAll(batch), Schedule.spaced("200 millis"))
      yield* Effect.sleep(every)
    }
  })
  const writer = yield* Effect.forkScoped(Effect.orDie(write))
  return Effect.suspend(() => {
    writing = false
    return Fiber.join(writer)
  })
})
