/** The client's seam on connections of its own. */
import { Sockets, type Transport } from "@eventbus/kafka-client"
import * as Effect from "effect/Effect"
import { makeNode } from "./node.ts"

/** Connects nothing yet. */
export const openTransport: Transport.Open = (settings) =>
  Effect.sync(() => {
    const sockets = Sockets.makeSockets(settings.tls)
    return {
      open: async (address) => makeNode(address, settings, sockets),
      addressCount: sockets.addressCount,
      destroyAll: sockets.destroyAll
    }
  })
