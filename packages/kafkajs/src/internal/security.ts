/** TLS and SASL options as kafkajs takes them. The only place where a secret leaves its `Redacted`. */
import { Effect, Redacted } from "effect"
import type { KafkaConfig, SASLOptions } from "kafkajs"
import type { Options, Sasl, Ssl } from "./options.ts"

const ssl = (options: Ssl): NonNullable<KafkaConfig["ssl"]> =>
  options === true
    ? true
    : {
        ...(options.ca !== undefined && { ca: typeof options.ca === "string" ? options.ca : [...options.ca] }),
        ...(options.cert !== undefined && { cert: options.cert }),
        ...(options.key !== undefined && { key: Redacted.value(options.key) }),
        ...(options.servername !== undefined && { servername: options.servername }),
        ...(options.rejectUnauthorized !== undefined && { rejectUnauthorized: options.rejectUnauthorized })
      }

const sasl = (options: Sasl): SASLOptions =>
  options.mechanism === "oauthbearer"
    ? {
        mechanism: "oauthbearer",
        oauthBearerProvider: () =>
          Effect.runPromise(Effect.map(options.token, (token) => ({ value: Redacted.value(token) })))
      }
    : { mechanism: options.mechanism, username: options.username, password: Redacted.value(options.password) }

export const securityConfig = (options: Options): Pick<KafkaConfig, "ssl" | "sasl"> => ({
  ...(options.ssl !== undefined && { ssl: ssl(options.ssl) }),
  ...(options.sasl !== undefined && { sasl: sasl(options.sasl) })
})

/** Takes the secrets of `options` out of a text that comes from the client or the broker. */
export const scrubber = (options: Options): ((text: string) => string) => {
  const secrets = [
    options.sasl !== undefined && options.sasl.mechanism !== "oauthbearer" ? Redacted.value(options.sasl.password) : "",
    options.ssl !== undefined && options.ssl !== true && options.ssl.key !== undefined
      ? Redacted.value(options.ssl.key)
      : ""
  ].filter((secret) => secret !== "")
  return (text) => secrets.reduce((safe, secret) => safe.replaceAll(secret, "<redacted>"), text)
}
