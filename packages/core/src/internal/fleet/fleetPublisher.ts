/** Writes the heartbeats and answers of a process to the fleet topic, which it creates when it is missing. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Broker, Producer, Reader } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import * as LogLine from "../base/logLine.ts"
import * as SingleFlight from "../base/singleFlight.ts"
import * as LeaseEntries from "../replay/leaseEntries.ts"
import * as Topics from "./fleetTopics.ts"

export interface FleetPublisher {
  /** Publishes a record to the fleet topic, and answers its offset. */
  readonly publish: (record: Omit<ProducerRecord, "topic">) => Effect.Effect<bigint, BrokerError>
  /** When the cluster appended the record at this offset; undefined where the topic does not tell. */
  readonly appendedMillis: (offset: bigint) => Effect.Effect<number | undefined, BrokerError>
}

/** A heartbeat that is not acknowledged until the next one is due is given up. */
const deliveryTimeout = "5 seconds"

interface Clients {
  readonly producer: Producer
  readonly reader: Reader
}

/** Nothing is connected before the first record. The clients close with the scope. */
export const make = (broker: Broker["Service"], topics: Topics.FleetTopics, scope: Scope.Scope): FleetPublisher => {
  const topic = topics.fleet
  let clients: Clients | undefined

  const ensure = Effect.scoped(
    Effect.flatMap(broker.admin, (admin) => Topics.createMissing(admin, topics, "fleet"))
  ).pipe(Effect.catch((error) => LogLine.warning(`The fleet topic '${topic}' cannot be created: ${error.message}`)))
  const connect = SingleFlight.make(
    Effect.gen(function* () {
      yield* ensure
      const producer = yield* broker.producer({ deliveryTimeout, closeTimeout: "1 second" })
      const reader = yield* broker.reader({ isolationLevel: "read_uncommitted", maxPartitionFetchBytes: 65_536 })
      clients = { producer, reader }
      return clients
    }).pipe(Scope.provide(scope)),
    scope
  )
  const connected = Effect.suspend(() => (clients === undefined ? connect : Effect.succeed(clients)))

  return {
    publish: (record) =>
      Effect.flatMap(connected, ({ producer }) => producer.send({ ...record, topic })).pipe(
        Effect.tapErrorTag("UnknownTopic", () => ensure),
        Effect.map(({ offset }) => offset)
      ),
    appendedMillis: (offset) =>
      Effect.flatMap(connected, ({ reader }) => reader.read({ topic, partition: 0, offset })).pipe(
        Effect.map((found) => {
          const record =
            found._tag === "Fetched" ? found.chunk.records.find((each) => each.offset === offset) : undefined
          return record === undefined ? undefined : LeaseEntries.appendedMillisOf(record)
        })
      )
  }
}
