/**
 * Decoding a fetched record into what the handler gets. Nothing here fails: a record that cannot be read is a value too.
 */
import { Result } from "effect"
import type { ConsumerRecord, Header, TopicPartition } from "../../ConsumerRecord.ts"
import type { Delivery } from "../../Delivery.ts"
import { DecodeFailure, type Serde, type Source } from "../../Serde.ts"
import * as Failure from "../failure/failure.ts"

/** Which halves of a record could not be read, and why. Both byte arrays are still on the record. */
export class Undecodable {
  readonly key: DecodeFailure | undefined
  readonly value: DecodeFailure | undefined

  constructor(key: DecodeFailure | undefined, value: DecodeFailure | undefined) {
    this.key = key
    this.value = value
  }
}

/** Who receives: what the enrichment headers of a delivery say. */
export interface Receiver {
  readonly bindingName: string
  /** `{hostname}-{index}`. */
  readonly consumerInstance: string
  /** Further headers for the handler. */
  readonly enrich: (record: ConsumerRecord) => ReadonlyArray<Header>
  /** How a record got here: nothing on the main topic, its headers on a retry topic. */
  readonly retryPosition: (record: ConsumerRecord) => RetryPosition
}

export interface RetryPosition {
  /** Where the record was first. */
  readonly origin: TopicPartition & { readonly offset: bigint; readonly timestamp: number }
  readonly tier: number
  readonly attempt: number
}

const text = new TextEncoder()

class DecodedDelivery<K, V> implements Delivery<K, V> {
  readonly key: K
  readonly value: V
  readonly record: ConsumerRecord
  readonly #receiver: Receiver
  readonly #receivedMillis: number
  #headers: ReadonlyArray<Header> | undefined = undefined
  #progress: RetryPosition | undefined = undefined

  constructor(key: K, value: V, record: ConsumerRecord, receiver: Receiver, receivedMillis: number) {
    this.key = key
    this.value = value
    this.record = record
    this.#receiver = receiver
    this.#receivedMillis = receivedMillis
  }

  get bindingName(): string {
    return this.#receiver.bindingName
  }

  get deduplicationKey(): string {
    const { topic, partition, offset } = this.#way.origin
    return `${topic}-${partition}-${offset}`
  }

  get tier(): number {
    return this.#way.tier
  }

  get attempt(): number {
    return this.#way.attempt
  }

  get #way(): RetryPosition {
    this.#progress ??= this.#receiver.retryPosition(this.record)
    return this.#progress
  }

  get headers(): ReadonlyArray<Header> {
    if (this.#headers === undefined) {
      const added = new Map([
        ["x-eventbus-binding-name", this.#receiver.bindingName],
        ["x-eventbus-received-timestamp", String(this.#receivedMillis)],
        ["x-eventbus-consumer-instance", this.#receiver.consumerInstance]
      ])
      const further = this.#receiver.enrich(this.record).filter((header) => !added.has(header.key))
      const replaced = new Set([...added.keys(), ...further.map(({ key }) => key)])
      const own = this.record.headers.filter((header) => !replaced.has(header.key))
      const ours = Array.from(added, ([key, value]) => ({ key, value: text.encode(value) }))
      this.#headers = [...own, ...ours, ...further]
    }
    return this.#headers
  }
}

/** A serde that throws, against its contract, has not read the bytes either. */
const read = <A>(serde: Serde<A>, bytes: Uint8Array | null, source: Source): Result.Result<A, DecodeFailure> => {
  try {
    return serde.decode(bytes, source)
  } catch (thrown) {
    const { className, message } = Failure.fromUnknown(thrown)
    return Result.fail(new DecodeFailure({ serde: serde.name, path: "", detail: `${className} ${message}` }))
  }
}

/** Decodes key and value; `receivedMillis` is when the chunk that holds the record arrived. */
export const decode = <K, V>(
  key: Serde<K>,
  value: Serde<V>,
  record: ConsumerRecord,
  receiver: Receiver,
  receivedMillis: number
): Delivery<K, V> | Undecodable => {
  const decodedKey = read(key, record.key, record)
  const decodedValue = read(value, record.value, record)
  if (Result.isSuccess(decodedKey) && Result.isSuccess(decodedValue)) {
    return new DecodedDelivery(decodedKey.success, decodedValue.success, record, receiver, receivedMillis)
  }
  return new Undecodable(
    Result.isFailure(decodedKey) ? decodedKey.failure : undefined,
    Result.isFailure(decodedValue) ? decodedValue.failure : undefined
  )
}
