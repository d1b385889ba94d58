/** A replayed record fits wherever its dead letter did (ruling 78). */
import * as Effect from "effect/Effect"
import type { Producer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ProducerRecord, RecordMetadata } from "../../ConsumerRecord.ts"

/** Sends a copy with its codec, and where it is too large for its topic with gzip, which every client reads. */
export const send = (
  producer: Pick<Producer, "send">,
  copy: ProducerRecord
): Effect.Effect<RecordMetadata, BrokerError> =>
  Effect.catch(producer.send(copy), (error) =>
    error._tag === "RecordTooLarge" && copy.compression !== "gzip"
      ? producer.send({ ...copy, compression: "gzip" })
      : Effect.fail(error)
  )
