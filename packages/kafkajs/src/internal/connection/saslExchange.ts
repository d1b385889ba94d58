/** The SASL exchange of one connection: the credentials that it reads and the messages that it sends, each time that it authenticates. */
import * as Effect from "effect/Effect"
import type { Mechanism } from "kafkajs"
import type { ClientFailure } from "../wire/clientFailure.ts"
import { passwordMechanisms } from "../wire/kafkajsInternals.ts"
import { requestToken } from "./clientCredentials.ts"
import type { Sasl, SaslClientCredentials, SaslPassword, SaslToken, Token } from "./options.ts"
import type { Secrets } from "./secrets.ts"
import { makeTokens, type Tokens } from "./tokens.ts"

/**
 * Reads the credentials and returns how a connection authenticates with them. Runs for each new connection, and before a session ends that the broker
 * limits (KIP-368).
 */
export type Exchange = Effect.Effect<Mechanism["authenticationProvider"], ClientFailure>

const byPassword = ({ mechanism, username, password }: SaslPassword, secrets: Secrets): Exchange =>
  Effect.map(
    Effect.all({ username: secrets.read("the user name", username), password: secrets.read("the password", password) }),
    passwordMechanisms[mechanism]
  )

const separator = "\u0001"

/** The client's first message (RFC 7628, section 3.1; KIP-342). */
const firstMessage = (token: string, extensions: Token["extensions"] = {}): string => {
  const pairs = Object.entries(extensions).map(([name, value]) => `${name}=${value}`)
  return ["n,,", `auth=Bearer ${token}`, ...pairs, "", ""].join(separator)
}

/** kafkajs takes the body of a SaslAuthenticate request after its length. */
const framed = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(4)
  length.writeInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** The broker's answer without its length field. */
const answer = { decode: (bytes: Buffer) => bytes, parse: (bytes: Buffer) => bytes.subarray(4) }

const byToken = (tokens: Tokens, secrets: Secrets): Exchange =>
  Effect.map(tokens.get, (token) => ({ saslAuthenticate }) => {
    const send = (text: string) => saslAuthenticate({ request: { encode: () => framed(text) }, response: answer })
    const authenticate = async () => {
      try {
        const refusal = await send(firstMessage(secrets.reveal(token.value), token.extensions))
        // A broker that refuses a token first sends the reason; it fails the authentication when the client has acknowledged that.
        if (refusal !== undefined && refusal.length > 0) await send(separator)
      } catch (refused) {
        tokens.invalidate(token)
        throw refused
      }
    }
    return { authenticate }
  })

/** One exchange for all connections to a cluster, so that they share the token. */
export const makeExchange = (sasl: Sasl, secrets: Secrets): Exchange => {
  if (sasl.mechanism !== "oauthbearer") return byPassword(sasl, secrets)
  return byToken(makeTokens(isClientCredentials(sasl) ? requestToken(sasl, secrets) : sasl.token, secrets), secrets)
}

/** As the check of the options tells the two apart. */
const isClientCredentials = (sasl: SaslToken | SaslClientCredentials): sasl is SaslClientCredentials =>
  "tokenEndpoint" in sasl && sasl.tokenEndpoint !== undefined
