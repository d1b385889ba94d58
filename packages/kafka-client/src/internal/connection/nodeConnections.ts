/** Connects the clients of single nodes, and closes them. */
import * as Effect from "effect/Effect"
import { type ClientFailure, failure, fromThrown, Local, notAccepted } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"

/** `host:port` of a node. */
export const addressOf = ({ host, port }: NodeClient): string => `${host}:${port}`

/** The two silences of an address. */
const silences = [
  { is: ({ type }: ClientFailure) => type === Local.timeout, text: "accepted the connection and did not answer" },
  { is: ({ detail }: ClientFailure) => detail === notAccepted, text: "did not accept the connection" }
]

export interface Connections {
  /** Connects a node, once for all that wait for it. The failure says how long the node was silent. */
  readonly connect: (broker: NodeClient) => Effect.Effect<NodeClient, ClientFailure>
  /** Closes a client that nobody needs any more, also when its socket is still to be opened. */
  readonly abandon: (broker: NodeClient) => void
}

export const makeConnections = (): Connections => {
  const connecting = new WeakMap<NodeClient, Promise<void>>()
  const start = async (broker: NodeClient): Promise<void> => {
    const startedAt = performance.now()
    try {
      await broker.connect()
    } catch (thrown) {
      broker.closeAtOnce()
      const failed = fromThrown(thrown)
      const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
      const silence = silences.find(({ is }) => is(failed))?.text
      throw silence === undefined
        ? failed
        : failure(Local.connection, `${addressOf(broker)} ${silence} for ${seconds} s`)
    } finally {
      connecting.delete(broker)
    }
  }
  const connect = (broker: NodeClient): Effect.Effect<NodeClient, ClientFailure> =>
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
  const abandon = (broker: NodeClient): void => {
    broker.closeAtOnce()
    connecting
      .get(broker)
      ?.then(() => broker.closeAtOnce())
      .catch(() => undefined)
  }
  return { connect, abandon }
}
