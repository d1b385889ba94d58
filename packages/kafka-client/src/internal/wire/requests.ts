/** Sends one request to one node, in the newest version that both speak, and reads the answer. */
import * as Effect from "effect/Effect"
import { type ClientFailure, failure, fromThrown, Local } from "../../ClientFailure.ts"
import type { NodeClient, VersionRange } from "../../Transport.ts"
import type { Api } from "../protocol/api.ts"
import type { Apis } from "../protocol/apis.ts"
import { codecs } from "../protocol/codecs.ts"
import { Reader } from "../protocol/reader.ts"

/** Why a node and this client do not understand each other. A rolling upgrade, or the way back from it, may change that. */
const unsupported = (
  { host, port }: NodeClient,
  { name, versions }: Pick<Api<never, unknown>, "name" | "versions">,
  spoken: VersionRange | undefined
): ClientFailure => {
  const ofNode = spoken === undefined ? `does not speak ${name}` : `speaks ${name} ${spoken.min} to ${spoken.max}`
  const ofClient = `this client speaks ${versions.min} to ${versions.max}`
  return failure("UNSUPPORTED_VERSION", `the broker at ${host}:${port} ${ofNode}, and ${ofClient}`)
}

/** Time for a held answer to arrive, in milliseconds. */
const travelMillis = 5_000

const isFlexible = ({ isFlexible }: Pick<Api<never, unknown>, "isFlexible">, version: number): boolean =>
  typeof isFlexible === "function" ? isFlexible(version) : isFlexible === true

/** Sends a request whose codec is not one of `codecs`. */
export const callApi = <P, A>(node: NodeClient, api: Api<P, A>, payload: P): Effect.Effect<A, ClientFailure> =>
  Effect.suspend(() => {
    const spoken = node.versionsOf(api.key)
    const apiVersion = Math.min(api.versions.max, spoken?.max ?? -1)
    if (apiVersion < Math.max(api.versions.min, spoken?.min ?? 0)) return Effect.fail(unsupported(node, api, spoken))
    return Effect.tryPromise({
      try: () =>
        node.send({
          ...{ apiKey: api.key, apiName: api.name, apiVersion, isFlexible: isFlexible(api, apiVersion) },
          ...(api.heldMillis !== undefined && { timeoutMillis: api.heldMillis(payload) + travelMillis }),
          encode: () => api.encode(payload, apiVersion),
          decode: (bytes) => {
            const reader = new Reader(bytes)
            const answer = api.decode(reader, apiVersion)
            const throttled = apiVersion >= (api.throttledFrom ?? Number.POSITIVE_INFINITY)
            return { answer, throttleMillis: throttled ? reader.throttleMillis : 0 }
          }
        }),
      catch: (thrown) => fromThrown(thrown)
    })
  })

/** Sends a request. Fails when there is no answer. Error codes stay in the answer for the caller to read. */
export const call = <K extends keyof Apis>(
  node: NodeClient,
  api: K,
  payload: Apis[K]["payload"]
): Effect.Effect<Apis[K]["response"], ClientFailure> => callApi(node, codecs[api], payload)

/**
 * Metadata of the given topics only; of all topics for null. Fails for an answer that names no node: a broker that has just started does not know its cluster yet, and another one does.
 */
export const metadataOf = (
  node: NodeClient,
  topics: ReadonlyArray<string> | null
): Effect.Effect<Apis["Metadata"]["response"], ClientFailure> =>
  Effect.flatMap(call(node, "Metadata", { topics }), (answer) =>
    answer.brokers.length > 0
      ? Effect.succeed(answer)
      : Effect.fail(failure(Local.connection, `the broker at ${node.host}:${node.port} names no node of its cluster`))
  )
