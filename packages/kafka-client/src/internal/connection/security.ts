/** TLS and SASL of one cluster, shared by its connections. */
import * as tls from "node:tls"
import * as Effect from "effect/Effect"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"
import type { Open } from "../../Transport.ts"
import type { Options, Ssl } from "./options.ts"
import { type Exchange, makeExchange } from "./saslExchange.ts"
import { makeSecrets, type Secrets } from "./secrets.ts"
import { makeSilentAddresses, type SilentAddresses } from "./silentAddresses.ts"

export interface Security {
  /** TLS options of the next connection, with the secrets as they are now; undefined without TLS. */
  readonly tls: Effect.Effect<tls.ConnectionOptions, ClientFailure> | undefined
  /** undefined without authentication. */
  readonly sasl: Exchange | undefined
  /** Replaces secrets in a text. */
  readonly redact: Secrets["redact"]
}

/** Options, with the state that all connections to the cluster share. */
export interface SecuredOptions extends Options {
  readonly security: Security
  readonly open: Open
  readonly silent: SilentAddresses
}

const tlsOptions = Effect.fnUntraced(function* (options: Exclude<Ssl, boolean>, secrets: Secrets) {
  const { ca, cert, key, passphrase, servername, rejectUnauthorized } = options
  const authorities = ca === undefined ? [] : [ca].flat()
  const read = yield* Effect.all({
    ca: Effect.forEach(authorities, (one) => secrets.read("the certificate authority", one)),
    cert: cert === undefined ? Effect.undefined : secrets.read("the client certificate", cert),
    key: key === undefined ? Effect.undefined : secrets.read("the client key", key),
    passphrase: passphrase === undefined ? Effect.undefined : secrets.read("the passphrase", passphrase)
  })
  const secureContext = yield* Effect.try({
    try: () =>
      tls.createSecureContext({
        ...(read.ca.length > 0 && { ca: [...read.ca] }),
        ...(read.cert !== undefined && { cert: read.cert }),
        ...(read.key !== undefined && { key: read.key }),
        ...(read.passphrase !== undefined && { passphrase: read.passphrase })
      }),
    catch: (error) => failure(Local.tls, `ca, certificate and key cannot be used (${(error as Error).message})`)
  })
  const found: tls.ConnectionOptions = {
    secureContext,
    ...(servername !== undefined && { servername }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized })
  }
  return found
})

export const securedOptions = (options: Options, open: Open): SecuredOptions => {
  const { ssl, sasl } = options
  const secrets = makeSecrets()
  return {
    ...options,
    open,
    silent: makeSilentAddresses(),
    security: {
      tls: ssl === undefined || ssl === false ? undefined : tlsOptions(ssl === true ? {} : ssl, secrets),
      sasl: sasl === undefined ? undefined : makeExchange(sasl, secrets),
      redact: secrets.redact
    }
  }
}
