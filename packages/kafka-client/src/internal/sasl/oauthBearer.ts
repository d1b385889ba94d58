/** SASL OAUTHBEARER (RFC 7628, KIP-255). */
import type { SaslMechanism } from "../../SaslMechanism.ts"

const separator = "\u0001"

/** The client's first message (RFC 7628, section 3.1; KIP-342). */
const firstMessage = (token: string, extensions: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(extensions).map(([name, value]) => `${name}=${value}`)
  return ["n,,", `auth=Bearer ${token}`, ...pairs, "", ""].join(separator)
}

/** `refused`: the broker has refused the token. */
export const oauthBearer = (
  token: string,
  extensions: Readonly<Record<string, string>>,
  refused: () => void
): SaslMechanism => {
  let isRefused = false
  return {
    start: () => Buffer.from(firstMessage(token, extensions)),
    next: (answer) => {
      // A broker that refuses a token first sends the reason; it fails the authentication when the client has acknowledged that.
      if (answer.length === 0 || isRefused) return undefined
      isRefused = true
      return Buffer.from(separator)
    },
    refused
  }
}
