/** Turns failures below the port into `BrokerError`s that name this cluster, without secrets in them. */
import type { BrokerError } from "@eventbus/core"
import { Duration, Effect } from "effect"
import { brokerError, type ClientFailure, type Subject } from "../wire/errors.ts"
import { defaults } from "./options.ts"
import type { Secured } from "./security.ts"

export interface PortErrors {
  readonly of: (failed: ClientFailure, subject: Subject) => BrokerError.BrokerError
  readonly map: <A, R>(
    effect: Effect.Effect<A, ClientFailure, R>,
    subject: Subject
  ) => Effect.Effect<A, BrokerError.BrokerError, R>
}

export const portErrors = (options: Secured): PortErrors => {
  const connection = {
    brokers: options.brokers,
    mechanism: options.sasl?.mechanism.toUpperCase() ?? "none",
    requestTimeoutMillis: Duration.toMillis(options.requestTimeout ?? defaults.requestTimeoutMillis)
  }
  const { scrub } = options.security
  const of: PortErrors["of"] = (failed, subject) =>
    brokerError({ ...failed, detail: scrub(failed.detail) }, subject, connection)
  return { of, map: (effect, subject) => Effect.mapError(effect, (failed) => of(failed, subject)) }
}
