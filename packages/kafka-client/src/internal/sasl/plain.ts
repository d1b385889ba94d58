/** SASL PLAIN (RFC 4616). */
import type { SaslMechanism } from "../../SaslMechanism.ts"
import type { Credentials } from "./scram.ts"

export const plain = ({ username, password }: Credentials): SaslMechanism => ({
  start: () => Buffer.from(`\0${username}\0${password}`),
  next: () => undefined
})
