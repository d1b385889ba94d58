/** Options of a cluster where types do not hold: each one that cannot be used is refused, and no message shows a secret. */
import { assert, describe, it } from "@effect/vitest"
import { EventBusError } from "@eventbus/core"
import { KafkaClient } from "@eventbus/kafka-client"
import { Effect, Redacted } from "effect"
import { noTransport } from "../noTransport.ts"

const secret = Redacted.make("hunter2")
const options = { brokers: ["kafka-1:9092"] }
const plain = { mechanism: "plain", username: "app", password: secret }
const oauth = { mechanism: "oauthbearer", tokenEndpoint: "https://sso/token", clientId: "app", clientSecret: secret }

/** The problems of options, as `path: found`. */
const problems = (given: unknown): ReadonlyArray<string> => {
  try {
    KafkaClient.make({ name: "KafkaJs", transport: "kafkajs", open: noTransport }, given as KafkaClient.Options)
    return []
  } catch (error) {
    assert.instanceOf(error, EventBusError.ConfigurationValidation)
    assert.notInclude((error as EventBusError.ConfigurationValidation).message, "hunter2")
    return (error as EventBusError.ConfigurationValidation).issues.map(({ path, found }) => `${path}: ${found}`)
  }
}

describe("options of a cluster", () => {
  it("of each mechanism are taken", () => {
    for (const sasl of [
      plain,
      { ...plain, mechanism: "scram-sha-256", username: secret, password: Effect.succeed(secret) },
      oauth,
      { ...oauth, scope: "kafka", parameters: { audience: "kafka" }, credentialsIn: "form", extensions: { a: "b" } },
      { ...oauth, token: undefined },
      { mechanism: "oauthbearer", token: Effect.succeed(secret) },
      { mechanism: "oauthbearer", token: Effect.succeed(secret), tokenEndpoint: undefined }
    ])
      assert.deepStrictEqual(problems({ ...options, sasl }), [])
    for (const brokers of [["10.0.0.1:9092", "kafka.example.com:65535"], ["[::1]:9092"]])
      assert.deepStrictEqual(problems({ brokers }), [])
    assert.deepStrictEqual(
      problems({ ...options, ssl: { ca: ["PEM", secret], cert: "PEM", key: secret, passphrase: secret } }),
      []
    )
  })

  const text = "a value of type string"
  const wrongSasl: ReadonlyArray<readonly [name: string, sasl: unknown, problems: ReadonlyArray<string>]> = [
    ["no user and no password", { mechanism: "plain" }, ["username: undefined", "password: undefined"]],
    ["a misspelt password", { mechanism: "plain", username: "app", pasword: secret }, ["password: undefined"]],
    ["a password as plain text", { ...plain, password: "hunter2" }, [`password: ${text}`]],
    ["a password that is a number", { ...plain, password: 5 }, ["password: a value of type number"]],
    ["a Redacted number", { ...plain, password: Redacted.make(5) }, ["password: a value of type object"]],
    ["an empty user", { ...plain, username: "" }, [`username: ${text}`]],
    ["SCRAM with null", { ...plain, mechanism: "scram-sha-512", password: null }, ["password: null"]],
    ["no source of tokens", { mechanism: "oauthbearer" }, ["token: undefined"]],
    ["a token as plain text", { mechanism: "oauthbearer", token: "hunter2" }, [`token: ${text}`]],
    ["two sources", { ...oauth, token: Effect.succeed(secret) }, ["token: a token beside tokenEndpoint"]],
    [
      "an endpoint that is no URL",
      { ...oauth, tokenEndpoint: "https//app:hunter2@sso" },
      ["tokenEndpoint: 'https//<redacted>@sso'"]
    ],
    [
      "an endpoint with a user and a password",
      { ...oauth, tokenEndpoint: "https://app:hunter2@sso/token" },
      ["tokenEndpoint: 'https://<redacted>@sso/token'"]
    ],
    ["a client without its secret", { ...oauth, clientSecret: undefined }, ["clientSecret: undefined"]],
    ["a scope that is a number", { ...oauth, scope: 5 }, ["scope: a value of type number"]],
    ["parameters that are a list", { ...oauth, parameters: [1] }, ["parameters: a value of type object"]],
    ["a parameter that is a number", { ...oauth, parameters: { a: 1 } }, ["parameters.a: a value of type number"]],
    ["a misspelt place of the credentials", { ...oauth, credentialsIn: "Form" }, ["credentialsIn: 'Form'"]],
    ["extensions that are a number", { ...oauth, extensions: 7 }, ["extensions: a value of type number"]],
    ["an unknown mechanism", { ...plain, mechanism: "PLAIN" }, ["mechanism: 'PLAIN'"]]
  ]
  for (const [name, sasl, found] of wrongSasl)
    it(`ruling 84 SEC-01 SASL, ${name}: refused`, () => {
      const expected = found.map((each) => `KafkaJs.sasl.${each}`)
      assert.deepStrictEqual(problems({ ...options, sasl }), expected)
    })

  it("ruling 84 SEC-01 what stands in place of a section is named by its type alone", () => {
    assert.deepStrictEqual(problems({ ...options, sasl: "plain:hunter2" }), [`KafkaJs.sasl: ${text}`])
    assert.deepStrictEqual(problems({ ...options, ssl: { key: "hunter2" } }), [`KafkaJs.ssl.key: ${text}`])
    assert.deepStrictEqual(problems({ ...options, ssl: { ca: {} } }), ["KafkaJs.ssl.ca: a value of type object"])
    assert.deepStrictEqual(problems("kafka://app:hunter2@kafka-1:9092"), [`KafkaJs: ${text}`])
  })

  it("CLN-10 the name of the layer's own transport is taken, and another one is refused", () => {
    assert.deepStrictEqual(problems({ ...options, transport: "kafkajs" }), [])
    assert.deepStrictEqual(problems({ ...options, transport: "kafka" }), ["KafkaJs.transport: 'kafka'"])
  })

  it("ruling 84 an address without a port, with a port out of range, or with more than host and port is refused", () => {
    for (const [address, shown] of [
      ["localhost", "'localhost'"],
      ["localhost:0", "'localhost:0'"],
      ["localhost:99999", "'localhost:99999'"],
      ["localhost:abc", "'localhost:abc'"],
      ["local host:9092", "'local host:9092'"],
      ["::1:9092", "'::1:9092'"],
      ["kafka-1:9092,kafka-2:9092", "'kafka-1:9092,kafka-2:9092'"],
      ["kafka://app:hunter2@kafka-1:9092", "'kafka://<redacted>@kafka-1:9092'"],
      [9092, "a value of type number"]
    ] as const)
      assert.deepStrictEqual(problems({ brokers: ["kafka-1:9092", address] }), [`KafkaJs.brokers[1]: ${shown}`])
    assert.deepStrictEqual(problems({ brokers: "localhost:9092" }), [`KafkaJs.brokers: ${text}`])
    assert.deepStrictEqual(problems({ brokers: [] }), ["KafkaJs.brokers: a value of type object"])
  })
})
