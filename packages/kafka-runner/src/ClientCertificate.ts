/** Self-signed client certificates for mutual TLS, made without any tool. A broker trusts the certificate itself. */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto"

/** A certificate and its private key. */
export interface ClientCertificate {
  /** The certificate as PEM. */
  readonly cert: string
  /** The private key as PEM. */
  readonly key: string
  /** The private key as PEM, encrypted with `passphrase`. */
  readonly encryptedKey: string
  /** The passphrase of `encryptedKey`. */
  readonly passphrase: string
}

const tag = { integer: 0x02, bitString: 0x03, objectId: 0x06, utf8: 0x0c, sequence: 0x30, set: 0x31, utcTime: 0x17 }

/** One value in DER. */
const der = (type: number, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([type, ...size]), content])
}

const commonName = Buffer.from("550403", "hex")
const ecdsaWithSha256 = der(tag.sequence, der(tag.objectId, Buffer.from("2a8648ce3d040302", "hex")))

const nameOf = (name: string): Buffer => {
  const attribute = der(tag.sequence, der(tag.objectId, commonName), der(tag.utf8, Buffer.from(name)))
  return der(tag.sequence, der(tag.set, attribute))
}

const timeOf = (date: Date): Buffer => {
  const digits = date.toISOString().replace(/\D/g, "").slice(2, 14)
  return der(tag.utcTime, Buffer.from(`${digits}Z`))
}

const dayMillis = 86_400_000

/** Makes a certificate of `CN=name`, valid from yesterday on. `lifeMillis`: from now to its end, in milliseconds; the end is a full second. Default 6 days. */
export const make = (name: string, lifeMillis = 6 * dayMillis): ClientCertificate => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  const validity = der(
    tag.sequence,
    timeOf(new Date(Date.now() - dayMillis)),
    timeOf(new Date(Date.now() + lifeMillis))
  )
  const serial = der(tag.integer, Buffer.concat([Buffer.from([1]), randomBytes(8)]))
  const subject = nameOf(name)
  const spki = publicKey.export({ type: "spki", format: "der" })
  const toSign = der(tag.sequence, serial, ecdsaWithSha256, subject, validity, subject, spki)
  const signature = der(tag.bitString, Buffer.from([0]), sign("sha256", toSign, privateKey))
  const bytes = der(tag.sequence, toSign, ecdsaWithSha256, signature)
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? []
  const passphrase = randomBytes(9).toString("base64url")
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    encryptedKey: privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase }).toString(),
    passphrase
  }
}
