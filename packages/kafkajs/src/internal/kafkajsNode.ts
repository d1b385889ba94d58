/** kafkajs's client of a node as the client's seam has it. */
import { Handshake, type Transport } from "@eventbus/kafka-client"
import { kafkajsFailure } from "./kafkajsFailure.ts"
import { type Encoded, type KafkaBroker, kafkajsVersion, type ProtocolRequest } from "./kafkajsInternals.ts"
import { closeAtOnce } from "./kafkajsPatches.ts"

/** An empty list of tagged fields: kafkajs writes and reads the headers of versions that have none. */
const noTags = Buffer.of(0)

const encoded = ({ encode, isFlexible }: Transport.Request<unknown>): Encoded => {
  const { bytes, whole } = encode()
  const begin = whole === undefined ? -1 : whole.length - bytes.length - (isFlexible ? noTags.length : 0)
  // Without room before it, a flexible body is copied.
  if (whole === undefined || begin < 0) {
    const body = isFlexible ? Buffer.concat([noTags, bytes]) : bytes
    return { buf: body, buffer: body }
  }
  if (isFlexible) noTags.copy(whole, begin)
  const body = whole.subarray(begin)
  return { buf: body, buffer: body, whole }
}

interface Decoded<A> {
  readonly answer: A
  /** kafkajs waits for this time, in milliseconds, before it sends the next request. */
  readonly clientSideThrottleTime: number
}

/** An answer that cannot be read is none, and the bytes behind it are not understood either. */
const unreadable = (error: unknown): Error =>
  Object.assign(new Error(`not an answer of Kafka (${(error as Error).message})`), { code: "EBADMSG" })

const protocolRequest = <A>(request: Transport.Request<A>): ProtocolRequest => {
  const { apiKey, apiName, apiVersion, decode, isFlexible, timeoutMillis } = request
  return {
    request: { apiKey, apiName, apiVersion, encode: async () => encoded(request) },
    response: {
      decode: async (bytes): Promise<Decoded<A>> => {
        try {
          const { answer, throttleMillis } = decode(isFlexible ? Handshake.behindTags(bytes) : bytes)
          return { answer, clientSideThrottleTime: throttleMillis }
        } catch (error) {
          throw unreadable(error)
        }
      },
      parse: async (decoded) => (decoded as Decoded<A>).answer
    },
    ...(timeoutMillis !== undefined && { requestTimeout: timeoutMillis })
  }
}

/** kafkajs asks for versions of APIs only, and names itself to no broker. */
const features = Handshake.apiVersions({ name: "kafkajs", version: kafkajsVersion })

export const kafkajsNode = (broker: KafkaBroker): Transport.NodeClient => {
  const { connectionPool } = broker
  const orFailure = <A>(promise: Promise<A>): Promise<A> =>
    promise.catch((thrown) => {
      throw kafkajsFailure(thrown)
    })

  const send = async <A>(request: Transport.Request<A>): Promise<A> => {
    try {
      return (await connectionPool.send(protocolRequest(request))) as A
    } catch (error) {
      const { name, code } = error as { readonly name?: unknown; readonly code?: unknown }
      // As kafkajs's Broker does: the pool's other connection is useless without this one.
      if (name === "KafkaJSConnectionClosedError") await broker.disconnect()
      // A node that does not answer keeps its socket open. Closing it lets the next request go to another node.
      if (name === "KafkaJSRequestTimeoutError") broker.disconnect().catch(() => undefined)
      if (code === "EBADMSG") closeAtOnce(broker)
      throw kafkajsFailure(error)
    }
  }

  return {
    host: connectionPool.host,
    port: connectionPool.port,
    connect: () => orFailure(broker.connect()),
    isConnected: () => broker.isConnected(),
    isBusy: () => connectionPool.pool[0].requestQueue.inflight.size > 0,
    versionsOf: (apiKey) => {
      const found = broker.versions?.[apiKey]
      return found === undefined ? undefined : { min: found.minVersion, max: found.maxVersion }
    },
    features: async () => {
      const newest = broker.versions?.[features.apiKey]?.maxVersion ?? 0
      return newest < features.apiVersion ? new Map() : (await send(features)).features
    },
    send,
    disconnect: () => orFailure(broker.disconnect()),
    closeAtOnce: () => closeAtOnce(broker)
  }
}
