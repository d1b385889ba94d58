/** The client's seam on connections of its own. */
import { LogLine } from "@eventbus/core"
import { Sockets, type Transport } from "@eventbus/kafka-client"
import * as Effect from "effect/Effect"
import { makeNode } from "./node.ts"

/** Connects nothing yet. Connections that open, and why they end, are logged at debug level: failures are reported as typed errors, once. */
export const openTransport: Transport.Open = Effect.fnUntraced(function* (settings) {
  const context = yield* Effect.context<never>()
  const sockets = Sockets.makeSockets(settings.tls)
  const log = (text: string): void => {
    Effect.runForkWith(context)(LogLine.debug(settings.redact(text)).pipe(Effect.annotateLogs({ client: "kafka" })))
  }
  const transport: Transport.Transport = {
    open: async (address) => makeNode(address, settings, sockets, log),
    addressCount: sockets.addressCount,
    destroyAll: sockets.destroyAll
  }
  return transport
})
