/** The SASL exchanges of one client: the credentials that it reads each time that a connection authenticates. */
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { SaslMechanism } from "../../SaslMechanism.ts"
import { oauthBearer } from "../sasl/oauthBearer.ts"
import { plain } from "../sasl/plain.ts"
import { type Credentials, scram } from "../sasl/scram.ts"
import { requestToken } from "./clientCredentials.ts"
import type { Sasl, SaslClientCredentials, SaslPassword, SaslToken } from "./options.ts"
import type { Secrets } from "./secrets.ts"
import { makeTokens, type Tokens } from "./tokens.ts"

/**
 * Reads the credentials and returns how a connection authenticates with them. Runs for each new connection, and before a session ends that the broker
 * limits (KIP-368).
 */
export type Exchange = Effect.Effect<SaslMechanism, ClientFailure>

const passwordMechanisms: {
  readonly [M in SaslPassword["mechanism"]]: (credentials: Credentials) => SaslMechanism
} = {
  plain,
  "scram-sha-256": (credentials) => scram("sha256", credentials),
  "scram-sha-512": (credentials) => scram("sha512", credentials)
}

const byPassword = ({ mechanism, username, password }: SaslPassword, secrets: Secrets): Exchange =>
  Effect.map(
    Effect.all({ username: secrets.read("the user name", username), password: secrets.read("the password", password) }),
    passwordMechanisms[mechanism]
  )

const byToken = (tokens: Tokens, secrets: Secrets): Exchange =>
  Effect.map(tokens.get, (token) =>
    oauthBearer(secrets.reveal(token.value), token.extensions ?? {}, () => tokens.invalidate(token))
  )

/** One exchange for all connections to a cluster, so that they share the token. */
export const makeExchange = (sasl: Sasl, secrets: Secrets): Exchange => {
  if (sasl.mechanism !== "oauthbearer") return byPassword(sasl, secrets)
  return byToken(makeTokens(isClientCredentials(sasl) ? requestToken(sasl, secrets) : sasl.token, secrets), secrets)
}

/** As the check of the options tells the two apart. */
const isClientCredentials = (sasl: SaslToken | SaslClientCredentials): sasl is SaslClientCredentials =>
  "tokenEndpoint" in sasl && sasl.tokenEndpoint !== undefined
