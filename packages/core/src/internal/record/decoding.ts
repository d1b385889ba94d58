/**
 * Decodes a fetched record into the delivery that the handler receives. Nothing here fails: an undecodable record is a value too.
 */
import * as Result from "effect/Result"
import type { ConsumerRecord, Header, TopicPartition } from "../../ConsumerRecord.ts"
import type { Delivery } from "../../Delivery.ts"
import { DecodeFailure, type Serde, type Source } from "../../Serde.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as Failure from "../failure/failure.ts"
import * as SerdeAnswer from "./serdeAnswer.ts"

/** Says which halves of a record could not be decoded, and why. The record still holds both byte arrays. */
export class Undecodable {
  readonly key: DecodeFailure | undefined
  readonly value: DecodeFailure | undefined

  constructor(key: DecodeFailure | undefined, value: DecodeFailure | undefined) {
    this.key = key
    this.value = value
  }
}

/** The consumer that receives a record. The enrichment headers of a delivery show it. */
export interface Receiver {
  readonly bindingName: string
  /** The alias of the cluster. */
  readonly cluster: string
  /** `{hostname}-{index}`. */
  readonly consumerInstance: string
  /** Further headers that only the handler sees. */
  readonly enrich: (record: ConsumerRecord) => ReadonlyArray<Header>
  /** Reads the tier and delivery of a record: tier 0 on the main topic, its headers on a retry topic. */
  readonly retryPosition: (record: ConsumerRecord) => RetryPosition
}

export interface RetryPosition {
  /** Where the record was read first. */
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
    const { topic, partition, offset } = this.#position.origin
    return `${topic}-${partition}-${offset}`
  }

  get idempotencyKey(): string {
    return `${this.#receiver.cluster}:${this.deduplicationKey}@${this.#position.origin.timestamp}`
  }

  get tier(): number {
    return this.#position.tier
  }

  get attempt(): number {
    return this.#position.attempt
  }

  get #position(): RetryPosition {
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
      const further = headersOf(this.#receiver.enrich(this.record)).filter((header) => !added.has(header.key))
      const replaced = new Set([...added.keys(), ...further.map(({ key }) => key)])
      const own = this.record.headers.filter((header) => !replaced.has(header.key))
      const ours = Array.from(added, ([key, value]) => ({ key, value: text.encode(value) }))
      this.#headers = [...own, ...ours, ...further]
    }
    return this.#headers
  }
}

const headersOf = (enriched: ReadonlyArray<Header>): ReadonlyArray<Header> => {
  if (Array.isArray(enriched)) return enriched
  UserFunction.settled("enrich", enriched)
  throw new TypeError(`enrich returned ${UserFunction.kindOf(enriched)}; a list of headers is expected`)
}

/** Decodes a half of a record. A serde that throws, or returns no Result, breaks its contract; its record counts as undecodable. */
export const read = <A>(
  serde: Pick<Serde<A>, "name" | "decode" | "prepare">,
  bytes: Uint8Array | null,
  source: Source,
  half: Half
): Result.Result<A, DecodeFailure> => {
  const unprepared = serde.prepare === undefined ? undefined : unpreparedRecords.get(source)?.get(half)
  if (unprepared !== undefined) return Result.fail(unprepared)
  try {
    return SerdeAnswer.resultOf("decode", serde.decode(bytes, source))
  } catch (thrown) {
    return Result.fail(brokenContract(serde, thrown))
  }
}

const brokenContract = (serde: Pick<Serde<never>, "name">, thrown: unknown): DecodeFailure => {
  const { className, message } = Failure.fromUnknown(thrown)
  return new DecodeFailure({ serde: serde.name, path: "", detail: `${className} ${message}` })
}

export type Half = "key" | "value"

/** Why a half of a record cannot be decoded, whatever `decode` would say. By the record, which nothing else keeps. */
const unpreparedRecords = new WeakMap<Source, Map<Half, DecodeFailure>>()

/** The serde's `prepare` broke its contract for this half of the record, which therefore cannot be decoded. */
export const refuse = (
  serde: Pick<Serde<never>, "name">,
  record: ConsumerRecord,
  half: Half,
  thrown: unknown
): void => {
  const halves = unpreparedRecords.get(record) ?? new Map<Half, DecodeFailure>()
  unpreparedRecords.set(record, halves.set(half, brokenContract(serde, thrown)))
}

/** Decodes key and value. `receivedMillis` is when the chunk with the record arrived, epoch milliseconds. */
export const decode = <K, V>(
  key: Serde<K>,
  value: Serde<V>,
  record: ConsumerRecord,
  receiver: Receiver,
  receivedMillis: number
): Delivery<K, V> | Undecodable => {
  const decodedKey = read(key, record.key, record, "key")
  const decodedValue = read(value, record.value, record, "value")
  if (Result.isSuccess(decodedKey) && Result.isSuccess(decodedValue)) {
    return new DecodedDelivery(decodedKey.success, decodedValue.success, record, receiver, receivedMillis)
  }
  return new Undecodable(
    Result.isFailure(decodedKey) ? decodedKey.failure : undefined,
    Result.isFailure(decodedValue) ? decodedValue.failure : undefined
  )
}
