/** The client's SASL exchanges as a mechanism of kafkajs. */
import type { SaslMechanism, Transport } from "@eventbus/kafka-client"
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from "kafkajs"
import { carried, kafkajsFailure } from "./kafkajsFailure.ts"
import { preparedSasl } from "./kafkajsPatches.ts"

/** kafkajs takes the body of a SaslAuthenticate request after its length. */
const framed = (message: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(message.length)
  return Buffer.concat([length, message])
}

/** The broker's answer without its length field. */
const answer = { decode: (bytes: Buffer) => bytes, parse: (bytes: Buffer) => bytes.subarray(4) }

const authenticator = (
  { start, next, refused }: SaslMechanism.SaslMechanism,
  { saslAuthenticate }: AuthenticationProviderArgs
): Authenticator => ({
  authenticate: async () => {
    try {
      for (let message: Buffer | undefined = start(); message !== undefined; ) {
        const bytes = framed(message)
        const given = await saslAuthenticate({ request: { encode: () => bytes }, response: answer })
        message = next(given ?? Buffer.of())
      }
    } catch (error) {
      refused?.()
      throw error
    }
  }
})

/** Credentials that are not there are a failure that kafkajs carries. */
export const kafkajsSasl = ({ mechanism, prepare }: Transport.Sasl): Mechanism =>
  preparedSasl(mechanism, () =>
    prepare().then(
      (exchange) => (connection: AuthenticationProviderArgs) => authenticator(exchange, connection),
      (thrown) => {
        throw carried(kafkajsFailure(thrown))
      }
    )
  )
