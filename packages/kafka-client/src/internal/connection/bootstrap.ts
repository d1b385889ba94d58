/** Asks the bootstrap addresses which nodes there are; the address that answers first decides. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { Address, NodeClient, Transport } from "../../Transport.ts"
import type { Apis } from "../protocol/apis.ts"
import { metadataOf } from "../wire/requests.ts"
import { firstAnswer } from "./firstAnswer.ts"
import type { Connections } from "./nodeConnections.ts"
import type { SilentAddresses } from "./silentAddresses.ts"

/** The brackets of an IPv6 address are no part of its name. */
const parseAddress = (address: string): Address => {
  const colon = address.lastIndexOf(":")
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(address.slice(colon + 1)) }
}

/** The node that answered, the nodes that it named, and the id of their cluster. */
export interface Bootstrapped {
  readonly broker: NodeClient
  readonly brokers: Apis["Metadata"]["response"]["brokers"]
  readonly clusterId: Apis["Metadata"]["response"]["clusterId"]
}

/** All that wait for the bootstrap addresses at the same time get the same answer. */
export const makeBootstrap = (
  bootstrap: ReadonlyArray<string>,
  silent: SilentAddresses,
  { addressCount, open }: Transport,
  { abandon, connect }: Connections
): Effect.Effect<Bootstrapped, ClientFailure> => {
  /** Asks the node behind a bootstrap address which nodes there are. The client of an address that does not answer is closed. */
  const atAddress = (address: string) =>
    Effect.acquireUseRelease(
      Effect.promise(() => open(parseAddress(address))),
      (broker) =>
        Effect.map(Effect.andThen(connect(broker), metadataOf(broker, [])), ({ brokers, clusterId }) => ({
          ...{ broker, brokers, clusterId }
        })),
      (broker, exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => abandon(broker)))
    ).pipe(
      Effect.tap(() => silent.noteAnswer(address)),
      silent.watch(address)
    )

  const ask = Effect.gen(function* () {
    const avoidedLast = bootstrap.toSorted((a, b) => Number(silent.has(a)) - Number(silent.has(b)))
    const counts = yield* Effect.promise(() =>
      Promise.all(avoidedLast.map((address) => addressCount(parseAddress(address).host)))
    )
    // Each connection to a name begins with another of its addresses.
    const attempts = avoidedLast.flatMap((address, index) => Array.from({ length: counts[index]! }, () => address))
    return yield* firstAnswer(attempts.map(atAddress))
  })

  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  let last: Result.Result<Bootstrapped, ClientFailure> | undefined
  let rounds = 0
  return Effect.suspend(() => {
    const before = rounds
    return Effect.gen(function* () {
      if (last === undefined || rounds === before) {
        last = yield* Effect.result(ask)
        rounds++
      }
      return yield* Effect.fromResult(last)
    }).pipe(oneAtATime)
  })
}
