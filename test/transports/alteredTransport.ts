/** A transport on which a test alters answers of a real broker, or loses them. */
import type { Transport } from "@eventbus/kafka-client"
import { Effect } from "effect"

/** Gives another answer to a request. `send` sends it. */
export type Alter = (request: Transport.Request<unknown>, send: () => Promise<unknown>) => Promise<unknown>

export const altered =
  (open: Transport.Open, alter: Alter): Transport.Open =>
  (settings) =>
    Effect.map(open(settings), (transport) => ({
      open: async (address) => {
        const node = await transport.open(address)
        return {
          ...{ host: node.host, port: node.port },
          connect: () => node.connect(),
          isConnected: () => node.isConnected(),
          isBusy: () => node.isBusy(),
          features: () => node.features(),
          versionsOf: (apiKey) => node.versionsOf(apiKey),
          send: <A>(request: Transport.Request<A>) => alter(request, () => node.send(request)) as Promise<A>,
          disconnect: () => node.disconnect(),
          closeAtOnce: () => node.closeAtOnce()
        }
      },
      addressCount: (host) => transport.addressCount(host),
      destroyAll: () => transport.destroyAll()
    }))
