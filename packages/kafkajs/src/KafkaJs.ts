/**
 * The Broker port on kafkajs 2.2.4, for Apache Kafka 2.4 and later (4.x included).
 *
 * kafkajs does what it does well: sockets, TLS, SASL and the encoding of requests. Group membership, fetching, producing and
 * transactions are this package's own; `internal/kafkajsInternals.ts` says why.
 */
import { hostname } from "node:os"
import { Broker, type BrokerError, Hostname } from "@eventbus/core"
import { Effect, Layer } from "effect"
import { adminContext } from "./internal/adminContext.ts"
import { connect } from "./internal/cluster.ts"
import { makeConsumerSession } from "./internal/consumerSession.ts"
import { groupAdmin } from "./internal/groupAdmin.ts"
import type { Options } from "./internal/options.ts"
import type { Orphans } from "./internal/orphans.ts"
import { portErrors } from "./internal/portErrors.ts"
import { makeProducer } from "./internal/producer.ts"
import { topicAdmin } from "./internal/topicAdmin.ts"
import { makeTransactionalProducer } from "./internal/transactions.ts"

export type { Options, Sasl, Ssl } from "./internal/options.ts"

/** A `Broker` for a cluster. Nothing is connected until it is used; each consumer, producer and admin has connections of its own. */
export const make = (options: Options): Broker.Broker["Service"] => {
  const errors = portErrors(options)
  const orphans: Orphans = new Map()
  return Broker.Broker.of({
    consumer: (consumer) => makeConsumerSession(options, errors, orphans, consumer),
    producer: (producer) => makeProducer(options, errors, producer ?? {}),
    transactionalProducer: (producer) => makeTransactionalProducer(options, errors, producer),
    admin: Effect.map(errors.map(connect(options), { operation: "connect" }), (cluster) => {
      const context = adminContext(cluster, errors)
      return { ...topicAdmin(context), ...groupAdmin(context) }
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
  layer(options).pipe(
    Layer.tap(() => Effect.scoped(portErrors(options).map(connect(options), { operation: "connect" })))
  )
