/** SASL SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither says it. */
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto"
import type { SaslMechanism } from "../../SaslMechanism.ts"

export interface Credentials {
  readonly username: string
  readonly password: string
}

/** The hash of a mechanism, by Node's name. */
export type Hash = "sha256" | "sha512"

const hashBytes = { sha256: 32, sha512: 64 }

/** Kafka's own least number. Fewer make the password easy to guess for a server that was not authenticated. */
const minIterations = 4_096

/** More would stop this process for longer than a tenth of a second. Kafka allows 16,384. */
const maxIterations = 131_072

/** No channel binding, and no other user to act for. */
const gs2Header = "n,,"

/** The attributes of a message, such as `r=nonce,s=salt`. */
const attributesOf = (message: string): ReadonlyMap<string, string> =>
  new Map(message.split(",").map((part) => [part.slice(0, 1), part.slice(2)]))

/** `=` and `,` end names. */
const escaped = (name: string): string => name.replaceAll("=", "=3D").replaceAll(",", "=2C")

interface Proof {
  readonly finalMessage: string
  /** The proof that the server must send. */
  readonly serverSignature: Buffer
}

const iterationsOf = (text: string | undefined): number => {
  const iterations = Number(text)
  if (Number.isInteger(iterations) && iterations >= minIterations && iterations <= maxIterations) return iterations
  throw new Error(
    `the broker wants ${text?.slice(0, 20)} iterations, and ${minIterations} to ${maxIterations} are allowed`
  )
}

/** Throws for what the server may put into each of its messages, and what ends the exchange. */
const checkGoesOn = (attributes: ReadonlyMap<string, string>): void => {
  const refusal = attributes.get("e")
  if (refusal !== undefined) throw new Error(`the broker refused: ${refusal.slice(0, 100)}`)
  if (attributes.has("m")) throw new Error("the broker wants an extension of SCRAM that this client does not know")
}

/** The client's answer to the server's first message. */
const prove = (hash: Hash, password: string, clientFirst: string, nonce: string, serverFirst: string): Proof => {
  const attributes = attributesOf(serverFirst)
  checkGoesOn(attributes)
  const serverNonce = attributes.get("r") ?? ""
  if (!serverNonce.startsWith(nonce) || serverNonce.length === nonce.length) {
    throw new Error("the broker answered with the nonce of another exchange")
  }
  const salt = Buffer.from(attributes.get("s") ?? "", "base64")
  if (salt.length === 0) throw new Error("the broker sent no salt")
  const salted = pbkdf2Sync(password, salt, iterationsOf(attributes.get("i")), hashBytes[hash], hash)
  const hmac = (key: Buffer, text: string): Buffer => createHmac(hash, key).update(text).digest()
  const withoutProof = `c=${Buffer.from(gs2Header).toString("base64")},r=${serverNonce}`
  const exchanged = [clientFirst, serverFirst, withoutProof].join(",")
  const clientKey = hmac(salted, "Client Key")
  const signature = hmac(createHash(hash).update(clientKey).digest(), exchanged)
  const proof = clientKey.map((byte, index) => byte ^ signature[index]!)
  return {
    finalMessage: `${withoutProof},p=${Buffer.from(proof).toString("base64")}`,
    serverSignature: hmac(hmac(salted, "Server Key"), exchanged)
  }
}

const checkServer = (serverFinal: string, expected: Buffer): void => {
  const attributes = attributesOf(serverFinal)
  checkGoesOn(attributes)
  const given = Buffer.from(attributes.get("v") ?? "", "base64")
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new Error("the broker did not prove that it knows the password")
  }
}

/** `nonce`: text without commas that is used once. */
export const scram = (
  hash: Hash,
  { username, password }: Credentials,
  nonce: string = randomBytes(24).toString("base64")
): SaslMechanism => {
  const clientFirst = `n=${escaped(username)},r=${nonce}`
  let proof: Proof | undefined
  return {
    start: () => Buffer.from(`${gs2Header}${clientFirst}`),
    next: (answer) => {
      if (proof !== undefined) {
        checkServer(answer.toString(), proof.serverSignature)
        return undefined
      }
      proof = prove(hash, password, clientFirst, nonce, answer.toString())
      return Buffer.from(proof.finalMessage)
    }
  }
}
