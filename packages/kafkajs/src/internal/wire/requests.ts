/** Sends one request to one node and decodes the answer. */
import * as Effect from "effect/Effect"
import type { Apis } from "./apis.ts"
import { type ClientFailure, clientFailure } from "./clientFailure.ts"
import { FlexibleReader, type FlexibleWriter } from "./flexible.ts"
import {
  apiKeys,
  Decoder,
  definitions,
  type Encoded,
  Encoder,
  type KafkaBroker,
  type ProtocolRequest,
  type Reader
} from "./kafkajsInternals.ts"

/** Replaces kafkajs's own encoding of a body, or its decoding of an answer. `version` is the negotiated API version. */
export interface Codecs<A> {
  readonly encode?: () => Encoded
  readonly decode?: (payload: Buffer, version: number) => A | Promise<A>
}

/**
 * Sends one request to one node and decodes the answer. Fails when there is no answer. Error codes stay in the answer for the caller to read;
 * kafkajs would fail the whole answer with the first of them, and log it.
 */
export const call = <K extends keyof Apis>(
  broker: KafkaBroker,
  api: K,
  payload: Apis[K]["payload"],
  codecs: Codecs<Apis[K]["response"]> = {}
): Effect.Effect<Apis[K]["response"], ClientFailure> =>
  Effect.tryPromise({
    try: () => {
      const base = broker.lookupRequest(apiKeys[api]!, definitions[api]!)(payload)
      const version = base.request.apiVersion
      return send<Apis[K]["response"]>(broker, {
        ...base,
        request: { ...base.request, ...(codecs.encode && { encode: async () => codecs.encode!() }) },
        response: {
          decode: codecs.decode ? async (bytes) => codecs.decode!(bytes, version) : base.response.decode,
          parse: async (data) => data
        }
      })
    },
    catch: clientFailure
  })

/** Metadata of the given topics only: kafkajs asks for all topics when it is given none. */
export const metadataOf = (
  broker: KafkaBroker,
  topics: ReadonlyArray<string>
): Effect.Effect<Apis["Metadata"]["response"], ClientFailure> =>
  call(
    broker,
    "Metadata",
    { topics, allowAutoTopicCreation: false },
    { encode: () => new Encoder().writeArray(topics).writeBoolean(false) }
  )

/** An API in the version that is sent, whatever kafkajs knows of it. */
interface RawApi {
  readonly key: number
  readonly version: number
  readonly name: string
}

/** Sends a request that kafkajs does not encode, or not in the version that is needed. */
export const callRaw = <A>(
  broker: KafkaBroker,
  api: RawApi,
  body: () => Encoded,
  decode: (reader: Reader) => A
): Effect.Effect<A, ClientFailure> => callBytes(broker, api, body, (bytes) => decode(new Decoder(bytes)))

/** As `callRaw`, for a flexible version of an API. */
export const callFlexible = <A>(
  broker: KafkaBroker,
  api: RawApi,
  body: () => FlexibleWriter,
  decode: (reader: FlexibleReader) => A
): Effect.Effect<A, ClientFailure> =>
  callBytes(
    broker,
    api,
    () => body().encoded,
    (bytes) => decode(new FlexibleReader(bytes))
  )

const callBytes = <A>(
  broker: KafkaBroker,
  api: RawApi,
  body: () => Encoded,
  decode: (answer: Buffer) => A
): Effect.Effect<A, ClientFailure> =>
  Effect.tryPromise({
    try: () =>
      send<A>(broker, {
        request: { apiKey: api.key, apiVersion: api.version, apiName: api.name, encode: async () => body() },
        response: { decode: async (bytes) => decode(bytes), parse: async (data) => data }
      }),
    catch: clientFailure
  })

const send = async <A>(broker: KafkaBroker, request: ProtocolRequest): Promise<A> => {
  try {
    return (await broker.connectionPool.send(request)) as A
  } catch (error) {
    // As kafkajs's Broker does: the pool's other connection is useless without this one.
    if (error instanceof Error && error.name === "KafkaJSConnectionClosedError") await broker.disconnect()
    // A node that does not answer keeps its socket open. Closing it lets the next request go to another node.
    if (error instanceof Error && error.name === "KafkaJSRequestTimeoutError")
      broker.disconnect().catch(() => undefined)
    throw error
  }
}
