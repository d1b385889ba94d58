/**
 * The Broker port on a `Transport`, for Apache Kafka 2.4 and later, 4.x included. `@eventbus/kafkajs` and `@eventbus/kafka` are this client on connections
 * of kafkajs, and on connections of their own.
 */
import { hostname } from "node:os"
import { Adapter, Broker, type BrokerError, Hostname } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { adminContext } from "./internal/admin/adminContext.ts"
import { aclAdmin } from "./internal/admin/authorizedOperations.ts"
import { groupAdmin } from "./internal/admin/groupAdmin.ts"
import { topicAdmin } from "./internal/admin/topicAdmin.ts"
import { brokerErrors } from "./internal/connection/brokerErrors.ts"
import { requestToken } from "./internal/connection/clientCredentials.ts"
import { connect } from "./internal/connection/cluster.ts"
import * as OptionChecks from "./internal/connection/optionChecks.ts"
import type { ClientCredentials, Options, Token } from "./internal/connection/options.ts"
import { makeSecrets } from "./internal/connection/secrets.ts"
import { securedOptions } from "./internal/connection/security.ts"
import type { TokenUnavailable } from "./internal/connection/tokenUnavailable.ts"
import { makePartitionReader } from "./internal/fetch/partitionReader.ts"
import { topicTail } from "./internal/fetch/topicTail.ts"
import { makeProducer } from "./internal/publish/producer.ts"
import { makeTransactionalProducer } from "./internal/publish/transactionalProducer.ts"
import { type Members, makeConsumerSession } from "./internal/session/consumerSession.ts"
import { makeStaticMembers } from "./internal/session/staticMembers.ts"
import type { Open } from "./Transport.ts"

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
export { TokenUnavailable } from "./internal/connection/tokenUnavailable.ts"

/** A transport, and its name. */
export interface Transported {
  /** The paths of problems with options begin with it. */
  readonly name: string
  /** Its name in the option `transport`. */
  readonly transport: string
  /** Makes the transport of one client. */
  readonly open: Open
}

/** The `Broker` of a cluster. It connects when it is used. Each consumer, producer, reader and admin has connections of its own, closed with its scope. Throws `ConfigurationValidation` for options of another kind, and for a number out of its range (`Ranges.cluster`). */
export const make = ({ name, transport, open }: Transported, options: Options): Broker.Broker["Service"] => {
  OptionChecks.check(name, transport, options)
  const secured = securedOptions(options, open)
  const errors = brokerErrors(secured)
  const members: Members = { abandoned: new Map(), statics: makeStaticMembers() }
  return Broker.Broker.of({
    consumer: (consumer) =>
      Effect.andThen(
        Adapter.checkOptions("consumer", consumer),
        makeConsumerSession(secured, errors, members, consumer)
      ),
    producer: (producer = {}) =>
      Effect.andThen(Adapter.checkOptions("producer", producer), makeProducer(secured, errors, producer)),
    transactionalProducer: (producer) =>
      Effect.andThen(
        Adapter.checkOptions("transactionalProducer", producer),
        makeTransactionalProducer(secured, errors, producer)
      ),
    reader: (reader = {}) =>
      Effect.andThen(Adapter.checkOptions("reader", reader), makePartitionReader(secured, errors, reader)),
    admin: Effect.map(errors.map(connect(secured), { operation: "connect" }), (cluster) => {
      const context = adminContext(cluster, errors)
      return {
        clusterId: cluster.id,
        ...topicAdmin(context),
        ...groupAdmin(context),
        ...aclAdmin(context),
        tail: topicTail(context)
      }
    })
  })
}

/** Provides the `Broker`, and this host's name. It connects when it is used: bindings wait for an unreachable cluster, and the program goes on. */
export const layer = (transported: Transported, options: Options): Layer.Layer<Broker.Broker> =>
  Layer.merge(
    Layer.sync(Broker.Broker, () => make(transported, options)),
    Layer.sync(Hostname.Hostname, hostname)
  )

/** Like `layer`, but connects once when the layer is built, and fails when no broker can be reached and authenticated to. */
export const layerConnected = (
  transported: Transported,
  options: Options
): Layer.Layer<Broker.Broker, BrokerError.BrokerError> =>
  layer(transported, options).pipe(Layer.tap((context) => Effect.scoped(Context.get(context, Broker.Broker).admin)))

/**
 * Requests a token from an OAuth 2 server by the client credentials grant. `sasl: { mechanism: "oauthbearer", tokenEndpoint, ... }` uses it too; it is
 * exported for programs that wrap it. Uses the `HttpClient` of the context, or else the platform's `fetch`. Tries three times when the server is unreachable
 * or answers 408, 429 or 5xx.
 */
export const clientCredentials = (credentials: ClientCredentials): Effect.Effect<Token, TokenUnavailable> =>
  Effect.suspend(() => requestToken(credentials, makeSecrets()))
