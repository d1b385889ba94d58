/** Opens the transport of one client, and closes it. */
import { Ranges } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { Transport } from "../../Transport.ts"
import { makeNodes, type Nodes } from "./nodes.ts"
import { defaults } from "./options.ts"
import { timeoutMillis as credentialsTimeoutMillis } from "./secrets.ts"
import type { SecuredOptions } from "./security.ts"

export interface OpenNodes {
  readonly nodes: Nodes
  readonly transport: Transport
}

/** Runs an effect for a transport. The promise rejects with the `ClientFailure`. */
type Run = <A>(effect: Effect.Effect<A, ClientFailure>) => Promise<A>

/** Connects nothing yet. */
export const openNodes = Effect.fnUntraced(function* (options: SecuredOptions, clientId: string | undefined, run: Run) {
  const { tls, sasl, redact } = options.security
  const transport = yield* options.open({
    clientId: clientId ?? options.clientId ?? defaults.clientId,
    connectionTimeoutMillis: Ranges.millisOf(options.connectionTimeout ?? defaults.connectionTimeoutMillis),
    credentialsTimeoutMillis,
    requestTimeoutMillis: Ranges.millisOf(options.requestTimeout ?? defaults.requestTimeoutMillis),
    tls: tls && (() => run(tls)),
    sasl: sasl && { mechanism: options.sasl?.mechanism.toUpperCase() ?? "", prepare: () => run(sasl) },
    redact
  })
  const opened: OpenNodes = { transport, nodes: makeNodes(options.brokers, options.silent, transport) }
  return opened
})

const closeTimeout = Duration.seconds(1)

/** Closes every socket, also those of nodes that do not answer. Takes a second at most. */
export const closeNodes = ({ nodes, transport }: OpenNodes) =>
  Effect.promise(() => nodes.close().catch(() => undefined)).pipe(
    // Finalizers are uninterruptible, and a timeout waits for what it cannot interrupt.
    Effect.interruptible,
    Effect.timeoutOption(closeTimeout),
    Effect.andThen(Effect.sync(transport.destroyAll))
  )
