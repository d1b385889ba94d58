/** The addresses that accept connections and do not answer. All connections to a cluster share them: each asks such an address last, and the log says it once. */
import { LogLine } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { patienceMillis } from "./firstAnswer.ts"

export interface SilentAddresses {
  /** Watches a request to an address: the address is silent when there is no answer within a second. */
  readonly watch: (address: string) => <A, E>(request: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The address has answered. */
  readonly noteAnswer: (address: string) => Effect.Effect<void>
  /** True while the address is better asked last. */
  readonly has: (address: string) => boolean
}

interface Silence {
  /** When the first request was sent that got no answer, by the monotonic clock. */
  readonly since: number
  /** Until then the address is asked last. */
  until: number
}

/** After this long a silent address is asked in order again. */
const avoidedMillis = 10_000

const seconds = (since: number): string => `${((performance.now() - since) / 1_000).toFixed(1)} s`

export const makeSilentAddresses = (): SilentAddresses => {
  const silences = new Map<string, Silence>()

  const note = (address: string, since: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      const until = performance.now() + avoidedMillis
      const known = silences.get(address)
      if (known !== undefined) {
        known.until = until
        return Effect.void
      }
      silences.set(address, { since, until })
      return LogLine.warning(`Broker ${address} has not answered for ${seconds(since)}; other addresses are tried`)
    })

  return {
    watch: (address) => (request) =>
      Effect.suspend(() => {
        const since = performance.now()
        const silent = Effect.sleep(patienceMillis).pipe(
          Effect.andThen(Effect.suspend(() => note(address, since))),
          Effect.andThen(Effect.never)
        )
        return Effect.raceFirst(request, silent)
      }),
    noteAnswer: (address) =>
      Effect.suspend(() => {
        const known = silences.get(address)
        silences.delete(address)
        return known === undefined
          ? Effect.void
          : LogLine.info(`Broker ${address} answers again after ${seconds(known.since)}`)
      }),
    has: (address) => performance.now() < (silences.get(address)?.until ?? 0)
  }
}
