import { join } from "node:path"
import { Effect } from "effect"
import { type ExecuteFailure, execute } from "./execute.ts"

/** A key store with a self-signed certificate of localhost and 127.0.0.1, and that certificate as PEM for clients. */
export interface Certificate {
  readonly keyStore: string
  readonly password: string
  readonly pem: string
}

/** Makes the certificate with the JDK's keytool. */
export const makeCertificate = Effect.fnUntraced(function* (
  keytool: string,
  folder: string
): Effect.fn.Return<Certificate, ExecuteFailure> {
  const keyStore = join(folder, "keystore.p12")
  const password = "key-store-secret"
  const store = ["-alias", "broker", "-keystore", keyStore, "-storetype", "PKCS12", "-storepass", password]
  yield* execute(keytool, [
    "-genkeypair",
    ...store,
    ...["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "7"],
    ...["-dname", "CN=localhost", "-ext", "bc=ca:true", "-ext", "san=dns:localhost,ip:127.0.0.1"]
  ])
  const printed = yield* execute(keytool, ["-exportcert", "-rfc", ...store])
  const pem = printed.slice(printed.indexOf("-----BEGIN"), printed.indexOf("-----END CERTIFICATE-----") + 25)
  return { keyStore, password, pem: `${pem}\n` }
})
