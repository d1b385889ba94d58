/**
 * The Broker port on kafkajs 2.2.4, for Apache Kafka 2.4 and later (4.x included).
 *
 * kafkajs does what it does well: sockets, TLS, SASL and the encoding of requests. Group membership, fetching, producing and
 * transactions are this package's own; `internal/wire/kafkajsInternals.ts` says why.
 */
import { hostname } from "node:os"
import { Broker, type BrokerError, Hostname } from "@eventbus/core"
import { Context, Effect, Layer } from "effect"
import { adminContext } from "./internal/admin/adminContext.ts"
import { rightsAdmin } from "./internal/admin/authorizedOperations.ts"
import { groupAdmin } from "./internal/admin/groupAdmin.ts"
import { topicAdmin } from "./internal/admin/topicAdmin.ts"
import { requestToken, type TokenUnavailable } from "./internal/connection/clientCredentials.ts"
import { connect } from "./internal/connection/cluster.ts"
import type { ClientCredentials, Options, Token } from "./internal/connection/options.ts"
import { portErrors } from "./internal/connection/portErrors.ts"
import { makeSecrets } from "./internal/connection/secrets.ts"
import { secure } from "./internal/connection/security.ts"
import { makeProducer } from "./internal/publish/producer.ts"
import { makeTransactionalProducer } from "./internal/publish/transactions.ts"
import { makeConsumerSession } from "./internal/session/consumerSession.ts"
import type { Orphans } from "./internal/session/orphans.ts"

export { TokenUnavailable } from "./internal/connection/clientCredentials.ts"
export type {
  ClientCredentials,
  Options,
  Sasl,
  SaslClientCredentials,
  SaslPassword,
  SaslToken,
  Ssl,
  Token
} from "./internal/connection/options.ts"

/** A `Broker` for a cluster. Nothing is connected until it is used; each consumer, producer and admin has connections of its own. */
export const make = (options: Options): Broker.Broker["Service"] => {
  const secured = secure(options)
  const errors = portErrors(secured)
  const orphans: Orphans = new Map()
  return Broker.Broker.of({
    consumer: (consumer) => makeConsumerSession(secured, errors, orphans, consumer),
    producer: (producer) => makeProducer(secured, errors, producer ?? {}),
    transactionalProducer: (producer) => makeTransactionalProducer(secured, errors, producer),
    admin: Effect.map(errors.map(connect(secured), { operation: "connect" }), (cluster) => {
      const context = adminContext(cluster, errors)
      return { ...topicAdmin(context), ...groupAdmin(context), ...rightsAdmin(context) }
    })
  })
}

/** Provides a `Broker`, and this host's name. Connects when it is used: a cluster that is away is waited for, binding by binding, and never ends the program. */
export const layer = (options: Options): Layer.Layer<Broker.Broker> =>
  Layer.merge(
    Layer.sync(Broker.Broker, () => make(options)),
    Layer.sync(Hostname.Hostname, hostname)
  )

/** The same for programs that rather end than wait: fails when no broker of the cluster can be reached and authenticated to. */
export const layerConnected = (options: Options): Layer.Layer<Broker.Broker, BrokerError.BrokerError> =>
  layer(options).pipe(Layer.tap((context) => Effect.scoped(Context.get(context, Broker.Broker).admin)))

/**
 * Asks an OAuth 2 server for a token by the client credentials grant: the provider behind `sasl: { mechanism: "oauthbearer", tokenEndpoint, ... }`, for
 * programs that wrap it. Uses the `HttpClient` of the context, else the platform's `fetch`; three tries when the server is away or busy.
 */
export const clientCredentials = (credentials: ClientCredentials): Effect.Effect<Token, TokenUnavailable> =>
  Effect.suspend(() => requestToken(credentials, makeSecrets()))
