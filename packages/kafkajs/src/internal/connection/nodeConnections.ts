/** Connects the clients of single nodes, and closes them. */
import * as Effect from "effect/Effect"
import { type ClientFailure, clientFailure, failure, Local } from "../wire/clientFailure.ts"
import type { KafkaBroker } from "../wire/kafkajsInternals.ts"
import { closeAtOnce } from "../wire/kafkajsPatches.ts"

/** `host:port` of a node. */
export const addressOf = ({ connectionPool: { host, port } }: KafkaBroker): string => `${host}:${port}`

/** The two silences of an address, as kafkajs reports them. */
const silences = [
  { is: ({ type }: ClientFailure) => type === Local.timeout, text: "accepted the connection and did not answer" },
  { is: ({ detail }: ClientFailure) => detail === "Connection timeout", text: "did not accept the connection" }
]

export interface Connections {
  /** Connects a node, once for all that wait for it. The failure says how long the node was silent. */
  readonly connect: (broker: KafkaBroker) => Effect.Effect<KafkaBroker, ClientFailure>
  /** Closes a client that nobody needs any more, also when its socket is still to be opened. */
  readonly abandon: (broker: KafkaBroker) => void
}

export const makeConnections = (): Connections => {
  const connecting = new WeakMap<KafkaBroker, Promise<void>>()
  const start = async (broker: KafkaBroker): Promise<void> => {
    const startedAt = performance.now()
    try {
      await broker.connect()
    } catch (thrown) {
      closeAtOnce(broker)
      const failed = clientFailure(thrown)
      const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
      const silence = silences.find(({ is }) => is(failed))?.text
      throw silence === undefined
        ? failed
        : failure(Local.connection, `${addressOf(broker)} ${silence} for ${seconds} s`)
    } finally {
      connecting.delete(broker)
    }
  }
  const connect = (broker: KafkaBroker): Effect.Effect<KafkaBroker, ClientFailure> =>
    Effect.suspend(() => {
      // A connection is open before the node has answered on it.
      const others = connecting.get(broker)
      if (others === undefined && broker.isConnected()) return Effect.succeed(broker)
      const pending = others ?? start(broker)
      connecting.set(broker, pending)
      return Effect.tryPromise({
        try: () => pending.then(() => broker),
        catch: (thrown) => thrown as ClientFailure
      })
    })
  const abandon = (broker: KafkaBroker): void => {
    closeAtOnce(broker)
    connecting
      .get(broker)
      ?.then(() => closeAtOnce(broker))
      .catch(() => undefined)
  }
  return { connect, abandon }
}
