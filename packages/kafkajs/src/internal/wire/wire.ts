/** Sends single requests to single nodes. */
import { Effect } from "effect"
import type { Apis } from "./apis.ts"
import { type ClientFailure, clientFailure } from "./errors.ts"
import {
  apiKeys,
  Decoder,
  definitions,
  type Encoded,
  type KafkaBroker,
  type ProtocolRequest,
  type Reader
} from "./kafkajsInternals.ts"

/** How a call differs from kafkajs's own encoding: a body of ours, or a decoder of ours (given the negotiated version). */
export interface Codecs<A> {
  readonly encode?: () => Encoded
  readonly decode?: (payload: Buffer, version: number) => A | Promise<A>
}

/**
 * Sends one request to one node and decodes the answer. Error codes inside the answer are left in it for the caller to read:
 * kafkajs would fail the whole answer with the first of them, and log it. Fails when there is no answer.
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

/** Sends a request that kafkajs does not know, or not in the version that is needed. */
export const callRaw = <A>(
  broker: KafkaBroker,
  api: { readonly key: number; readonly version: number; readonly name: string },
  body: () => Encoded,
  decode: (reader: Reader) => A
): Effect.Effect<A, ClientFailure> =>
  Effect.tryPromise({
    try: () =>
      send<A>(broker, {
        request: { apiKey: api.key, apiVersion: api.version, apiName: api.name, encode: async () => body() },
        response: { decode: async (bytes) => decode(new Decoder(bytes)), parse: async (data) => data }
      }),
    catch: clientFailure
  })

const send = async <A>(broker: KafkaBroker, request: ProtocolRequest): Promise<A> => {
  try {
    return (await broker.connectionPool.send(request)) as A
  } catch (error) {
    // as kafkajs's Broker does: the other connection of the pool is of no use without this one
    if (error instanceof Error && error.name === "KafkaJSConnectionClosedError") await broker.disconnect()
    // a node that does not answer keeps its socket open; it must not be the one that is asked next
    if (error instanceof Error && error.name === "KafkaJSRequestTimeoutError")
      broker.disconnect().catch(() => undefined)
    throw error
  }
}
