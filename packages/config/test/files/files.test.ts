import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { type ClusterSettings, Configuration } from "@eventbus/config"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Redacted, type Scope } from "effect"
import { issuesOf, withOrders } from "../issues.ts"

/** A folder with these files, until the scope closes. */
const folder = (files: Readonly<Record<string, string | Uint8Array>>): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = mkdtempSync(join(tmpdir(), "eventbus-config-"))
      for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content)
      return path
    }),
    (path) => Effect.sync(() => rmSync(path, { recursive: true }))
  )

const load = (path: string, options: Configuration.LoadOptions = {}) =>
  Configuration.load(path, { env: {}, ...options })

/** The one mistake of a file. */
const refusal = Effect.fnUntraced(function* (content: string | Uint8Array, name = "app.yaml") {
  const path = join(yield* folder({ [name]: content }), name)
  const { issues } = yield* Effect.flip(load(path))
  assert.lengthOf(issues, 1)
  const { at, found, allowed } = issues[0]!
  assert.strictEqual(at?.file, path)
  return `${[at?.line, at?.column].filter((each) => each !== undefined).join(":")} ${found}; ${allowed}`
})

describe("profiles and includes", () => {
  it.effect("a profile is laid over the file, key by key, in whatever spelling; later profiles win", () =>
    Effect.gen(function* () {
      const path = yield* folder({
        "app.yaml": withOrders("max-poll-records: 7", "retry: { tiers: [1m, 2m], tier0: { max-attempts: 2 } }"),
        "app-prod.yaml": "eventbus: { bindings: { orders: { maxPollRecords: 9, retry: { tiers: [5m] } } } }",
        "app-eu.yaml": "eventbus: { bindings: { orders: { concurrency: 3, max-poll-records: 11 } } }"
      })
      const app = join(path, "app.yaml")
      const read = (options: Configuration.LoadOptions) =>
        Effect.map(load(app, options), ({ bindings: [orders] }) => [
          orders!.maxPollRecords,
          orders!.concurrency,
          orders!.retry.tiers.length,
          orders!.retry.blocking.maxAttempts
        ])
      assert.deepStrictEqual(yield* read({}), [7, 1, 2, 2])
      assert.deepStrictEqual(yield* read({ profile: "prod" }), [9, 1, 1, 2])
      assert.deepStrictEqual(yield* read({ profile: ["prod", "eu"] }), [11, 3, 1, 2])
      assert.deepStrictEqual(yield* read({ env: { EVENTBUS_PROFILE: "eu, prod" } }), [9, 3, 1, 2])
      assert.deepStrictEqual(yield* read({ profile: [], env: { EVENTBUS_PROFILE: "eu" } }), [7, 1, 2, 2])
    })
  )

  it.effect("a variable that only an overridden value needs may be missing", () =>
    Effect.gen(function* () {
      const path = yield* folder({
        "app.yaml": withOrders('handler: "${MISSING}"'),
        "app-test.yaml": "eventbus: { bindings: { orders: { handler: fake } } }"
      })
      const { bindings } = yield* load(join(path, "app.yaml"), { profile: "test" })
      assert.strictEqual(bindings[0]!.handler, "fake")
    })
  )

  it.effect("a profile without a file, or whose name is a path, is refused", () =>
    Effect.gen(function* () {
      const app = join(yield* folder({ "app.yaml": withOrders() }), "app.yaml")
      const missing = yield* Effect.flip(load(app, { profile: "prod" }))
      assert.include(missing.message, "app-prod.yaml: found no such file")
      const path = yield* Effect.flip(load(app, { profile: "../../etc" }))
      assert.include(path.message, 'profile "../../etc"')
    })
  )

  it.effect("a file is laid over the files that it includes; two files may include the same one", () =>
    Effect.gen(function* () {
      const path = yield* folder({
        "common.yaml": "eventbus: { defaults: { fetch-max-wait: 1s, concurrency: 2 } }",
        "a.yaml": "include: common.yaml\neventbus: { bindings: { a: { topic: a, groupId: a } } }",
        "b.yaml": "include: [common.yaml]\neventbus: { bindings: { b: { topic: b, groupId: b, concurrency: 3 } } }",
        "app.yaml": "include: [a.yaml, b.yaml]\neventbus: { bindings: { a: { fetch-max-wait: 2s } } }"
      })
      const { bindings } = yield* load(join(path, "app.yaml"))
      assert.deepStrictEqual(
        bindings.map(({ name, fetchMaxWaitMs, concurrency }) => [name, fetchMaxWaitMs, concurrency]),
        [
          ["a", 2_000, 2],
          ["b", 1_000, 3]
        ]
      )
    })
  )

  it.effect("a cycle of includes is refused, and shown", () =>
    Effect.gen(function* () {
      const path = yield* folder({
        "a.yaml": `include: b.yaml\n${withOrders()}`,
        "b.yaml": "include: ./c.yaml",
        "c.yaml": "include: a.yaml"
      })
      const { issues } = yield* Effect.flip(load(join(path, "a.yaml")))
      const [cycle] = issues.filter((issue) => issue.path === "include")
      assert.strictEqual(cycle!.found.replaceAll(`${path}/`, ""), "a.yaml -> b.yaml -> c.yaml -> a.yaml")
      assert.strictEqual(cycle!.at?.file, join(path, "c.yaml"))
    })
  )

  it.effect("files that include each other many times are read once", () =>
    Effect.gen(function* () {
      const levels = Array.from({ length: 40 }, (_, level) => [
        `${level}.yaml`,
        `include: [${level + 1}.yaml, ${level + 1}.yaml]`
      ])
      const path = yield* folder({ ...Object.fromEntries(levels), "40.yaml": withOrders() })
      const { bindings } = yield* load(join(path, "0.yaml"))
      assert.lengthOf(bindings, 1)
    })
  )

  it.effect("CFG-21 mistakes of all files are reported at once, each with its file", () =>
    Effect.gen(function* () {
      const path = yield* folder({
        "app.yaml": `include: common.yaml\n${withOrders("concurency: 1")}`,
        "common.yaml": "eventbus: { defaults: { fetch-max-wait: soon } }",
        "app-prod.yaml": "eventbus: { bindings: { orders: { topic: '' } } }"
      })
      const { issues } = yield* Effect.flip(load(join(path, "app.yaml"), { profile: "prod" }))
      assert.sameMembers(
        issues.map(({ path: key, at }) => `${at!.file.slice(path.length + 1)} ${key}`),
        [
          "app.yaml eventbus.bindings.orders.concurency",
          "common.yaml eventbus.defaults.fetchMaxWaitMs",
          "app-prod.yaml eventbus.bindings.orders.topic"
        ]
      )
    })
  )

  it.effect("a mistake that a thousand bindings share is reported once", () =>
    Effect.gen(function* () {
      const bindings = Array.from({ length: 1000 }, (_, n) => `    b${n}: { topic: t${n}, groupId: g }`)
      const text = [
        "eventbus:",
        "  defaults: { session-timeout: 1s, ack-mode: NONE }",
        "  bindings:",
        ...bindings
      ].join("\n")
      const { issues } = yield* Effect.flip(Configuration.parse(text))
      assert.sameMembers(
        issues.map(({ at }) => `${at?.line}:${at?.column}`),
        ["2:32", "2:46"]
      )
    })
  )
})

describe("YAML", () => {
  it.effect("anchors, aliases and merges: a written key wins over a merged one", () =>
    Effect.gen(function* () {
      const text = `
x-common: &common { group-id: billing, concurrency: 3, fetch-max-wait: 1s }
eventbus:
  bindings:
    orders: { <<: *common, topic: orders, fetchMaxWait: 2s }
    audit: { <<: [{ concurrency: 5 }, *common], topic: audit }`
      const { bindings } = yield* Configuration.parse(text)
      assert.deepStrictEqual(
        bindings.map(({ groupId, concurrency, fetchMaxWaitMs }) => [groupId, concurrency, fetchMaxWaitMs]),
        [
          ["billing", 3, 2_000],
          ["billing", 5, 1_000]
        ]
      )
    })
  )

  it.effect("hostile files are refused in bounded time, each with one mistake that says what is wrong", () =>
    Effect.gen(function* () {
      const bomb = ["a: &l0 [x, x, x, x, x, x, x, x, x, x]"]
      for (let level = 1; level < 12; level++) {
        bomb.push(`l${level}: &l${level} [${Array.from({ length: 10 }, () => `*l${level - 1}`).join(", ")}]`)
      }
      assert.match(yield* refusal(bomb.join("\n")), /^5:\d+ more than 200000 values, those behind aliases included/)
      const merges = Array.from(
        { length: 40 },
        (_, n) => `l${n + 1}: &l${n + 1} { <<: [*l${n}, *l${n}], k${n}: *l${n} }`
      )
      assert.include(yield* refusal(["l0: &l0 { a: 1 }", ...merges].join("\n")), "more than 200000 values")
      assert.include(yield* refusal("a: &a [*a]"), "an alias of a value that contains it")
      assert.include(yield* refusal("a: *b"), "an alias without an anchor")
      assert.include(yield* refusal("[".repeat(100_000)), "nesting exceeded")
      assert.include(yield* refusal(`${"- ".repeat(100_000)}a`), "nesting exceeded")
      assert.include(yield* refusal(`${"{a: ".repeat(100_000)}`), "nesting exceeded")
      assert.include(yield* refusal("a: !!js/function 'x'"), "a tag; a value without a tag")
      assert.include(yield* refusal("? [a, b]\n: c"), "a key that is a collection")
      assert.include(yield* refusal("a: 1\n---\nb: 2"), "a second document; one document in a file")
      assert.include(yield* refusal("a: 'b"), "1:")
      assert.include(yield* refusal("a:\n\t- b"), "tab")
      assert.include(yield* refusal(""), "an empty file")
      assert.include(yield* refusal("# nothing\n"), "an empty file")
    })
  )

  it.effect("binary files and files that are too large are refused before they are parsed", () =>
    Effect.gen(function* () {
      assert.include(
        yield* refusal(new Uint8Array([0x61, 0x3a, 0x00, 0x01])),
        "a binary file: byte 2 is 0; text in UTF-8"
      )
      assert.include(yield* refusal(new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe])), "bytes that are not UTF-8")
      assert.include(
        yield* refusal(new Uint8Array(10 * 1024 * 1024).fill(0x61)),
        "a file of 10485760 bytes; at most 4194304 bytes"
      )
      // A megabyte of each: one long text, a long list, many keys.
      const size = 1024 * 1024
      for (const part of ["a", "- a\n", "a,", "a: b\n", '"\\n', "&a ", "'", "\n", "# ", "? ", "${", "a: |\n", "<<: "]) {
        const path = join(yield* folder({ "app.yaml": part.repeat(Math.floor(size / part.length)) }), "app.yaml")
        const error = yield* Effect.flip(load(path))
        assert.isAbove(error.issues.length, 0, JSON.stringify(part))
      }
    })
  )

  it.effect("a JSON file is strict: comments, trailing commas and bare words are refused with their location", () =>
    Effect.gen(function* () {
      assert.include(
        yield* refusal('{\n  "eventbus": { "bindings": {}, }\n}', "app.json"),
        "2:33 something that is not JSON"
      )
      assert.include(yield* refusal("eventbus: {}", "app.json"), "something that is not JSON")
      assert.include(yield* refusal('{"eventbus": ', "app.json"), "something that is not JSON")
    })
  )

  it.effect("CFG-01 a file without the root, or with a misspelled one, is refused", () =>
    Effect.gen(function* () {
      assert.include(yield* refusal("- a"), "1:1 a list; a section with keys out of include, eventbus")
      assert.include(yield* refusal("eventbus: { bindings: [a] }"), "a list; a section of names")
      assert.include(yield* refusal("eventbus: {}"), "1:11 nothing; a section of names")
      const app = join(
        yield* folder({ "app.yaml": "evntbus: { bindings: {} }\nserver: { port: 1 }\nx-mine: 1" }),
        "app.yaml"
      )
      const { issues } = yield* Effect.flip(load(app))
      assert.deepStrictEqual(
        issues.map(({ path, allowed }) => `${path} ${allowed}`),
        [
          "evntbus eventbus (did you mean that?)",
          "eventbus a section with keys out of clusters, fleet, audit, defaults, bindings",
          "server one of the keys include, eventbus"
        ]
      )
    })
  )

  it.effect("a byte order mark and Windows line ends do not change locations", () =>
    Effect.gen(function* () {
      const text = `\uFEFF${withOrders("concurrency: x").replaceAll("\n", "\r\n")}`
      const { issues } = yield* Effect.flip(Configuration.parse(text))
      assert.deepInclude(issues[0]!.at, { line: 6, column: 20 })
    })
  )

  it.effect("files that cannot be read", () =>
    Effect.gen(function* () {
      const path = yield* folder({})
      assert.include((yield* Effect.flip(load(join(path, "none.yaml")))).message, "none.yaml: found no such file")
      writeFileSync(join(path, "application.properties"), "messaging.enabled=true\n")
      const properties = yield* Effect.flip(load(join(path, "application.properties")))
      assert.include(properties.message, "found a .properties file, allowed is YAML or JSON with the root eventbus")
      assert.include((yield* Effect.flip(load(path))).message, "regular file")
      assert.include((yield* Effect.flip(load("/dev/zero"))).message, "something that is not a regular file")
      const app = `include: none.yaml\n${withOrders()}`
      const included = yield* folder({ "app.yaml": app })
      assert.include((yield* Effect.flip(load(join(included, "app.yaml")))).message, "none.yaml: found no such file")
    })
  )
})

describe("secrets in files", () => {
  const withPassword = (line: string) =>
    `${withOrders()}\n  clusters: { default: { brokers: "a:1", sasl: { mechanism: plain, username: app, ${line} } } }`

  it.effect("SEC-01 a secret comes from a file beside the configuration, without its line break", () =>
    Effect.gen(function* () {
      const path = yield* folder({ "app.yaml": withPassword('password-file: "${NAME:secret}"'), secret: "hunter2\n" })
      const { clusters } = yield* load(join(path, "app.yaml"))
      const { sasl } = clusters[0]!
      const password = sasl?.mechanism === "plain" ? sasl.password : undefined
      assert.isTrue(Effect.isEffect(password))
      const read = Effect.map(password as Effect.Effect<Redacted.Redacted<string>>, Redacted.value)
      assert.strictEqual(yield* read, "hunter2")
      // It is rotated.
      writeFileSync(join(path, "secret"), "hunter3\r\n")
      assert.strictEqual(yield* read, "hunter3")
      rmSync(join(path, "secret"))
      const error = yield* Effect.flip(read)
      assert.include(String(error), "secret' cannot be read (ENOENT)")
      assert.notInclude(JSON.stringify(clusters), "hunter")
    })
  )

  it.effect("settings for mutual TLS and OAuth come from a file unchanged", () =>
    Effect.gen(function* () {
      const tls =
        "ssl: { ca-file: ca.pem, cert-file: cert.pem, key-file: key.pem, passphrase: hunter2, servername: kafka }"
      const oauth =
        '{ mechanism: oauthbearer, token-endpoint: "https://id/token", client-id: app, client-secret: hunter2, scope: kafka }'
      const text = `${withOrders()}\n  clusters: { default: { brokers: "a:1", sasl: ${oauth}, ${tls} } }`
      const path = yield* folder({ "app.yaml": text, "ca.pem": "CA", "cert.pem": "CERT", "key.pem": "KEY" })
      const { clusters } = yield* load(join(path, "app.yaml"))
      const options: KafkaJs.Options = clusters[0]!
      assert.deepInclude(options.sasl, {
        mechanism: "oauthbearer",
        tokenEndpoint: "https://id/token",
        clientId: "app",
        scope: "kafka"
      })
      const { ssl } = clusters[0]!
      assert.isObject(ssl)
      const { ca, key, passphrase, servername, rejectUnauthorized } = ssl as ClusterSettings.SslSettings
      assert.strictEqual(Redacted.value(passphrase as Redacted.Redacted<string>), "hunter2")
      assert.deepStrictEqual([servername, rejectUnauthorized], ["kafka", true])
      const texts = yield* Effect.forEach([ca, key], (each) => each as Effect.Effect<Redacted.Redacted<string>>)
      assert.deepStrictEqual(texts.map(Redacted.value), ["CA", "KEY"])
    })
  )

  it.effect("a mechanism accepts exactly the keys that it needs", () =>
    Effect.gen(function* () {
      const issues = (sasl: string) =>
        issuesOf(Configuration.parse(`${withOrders()}\n  clusters: { default: { brokers: "a:1", sasl: { ${sasl} } } }`))
      const path = "eventbus.clusters.default.sasl"
      assert.deepStrictEqual(yield* issues("mechanism: plain, username: app, scope: x"), [
        `${path}.password: nothing; a text, which mechanism plain needs, or passwordFile`,
        `${path}.scope: "x"; no such key with mechanism plain`
      ])
      assert.deepStrictEqual(
        yield* issues("mechanism: oauthbearer, tokenEndpoint: 'https://id/token', clientId: y, password: hunter2"),
        [
          `${path}.clientSecret: nothing; a text, which mechanism oauthbearer needs, or clientSecretFile`,
          `${path}.password: a string (not shown); no such key with mechanism oauthbearer`
        ]
      )
    })
  )

  it.effect("SEC-01 a secret that stands in the wrong place is in no message", () =>
    Effect.gen(function* () {
      const clusters: ReadonlyArray<readonly [cluster: string, issue: string]> = [
        ['"kafka://u:hunter2@h:9092"', "default: a string (not shown); a section"],
        ['{ brokers: "u:hunter2@h:9092" }', 'default.brokers: "<redacted>@h:9092"; host:port'],
        ['{ brokers: ["SASL://u:hunter2@h:9092"] }', 'default.brokers[0]: "SASL://<redacted>@h:9092"; host:port'],
        ['{ brokers: "h:9092", sasl: "plain:u:hunter2" }', "default.sasl: a string (not shown); a section"],
        ['{ brokers: "h:9092", ssl: "hunter2" }', "default.ssl: a string (not shown); true or false"],
        [
          '{ brokers: "h:9092", sasl: { mechanism: oauthbearer, tokenEndpoint: "https://u:hunter2@id", clientId: a, clientSecret: b } }',
          'default.sasl.tokenEndpoint: "https://<redacted>@id"; a URL of http or https'
        ]
      ]
      for (const [cluster, issue] of clusters) {
        const text = `${withOrders()}\n  clusters: { default: ${cluster} }`
        const found = yield* issuesOf(Configuration.parse(text))
        assert.lengthOf(found, 1, cluster)
        assert.include(found[0], `eventbus.clusters.${issue}`)
        assert.notInclude(found[0], "hunter2")
      }
    })
  )

  it.effect(
    "CLN-15 ruling 84 a cluster names its transport; the layer of another one and an unknown name are refused",
    () =>
      Effect.gen(function* () {
        const withTransport = (line: string) => `${withOrders()}\n  clusters: { default: { brokers: "a:1"${line} } }`
        const read = (line: string, env = {}) =>
          Effect.map(Configuration.parse(withTransport(line), { env }), ({ clusters }) => clusters[0]!)
        assert.notProperty(yield* read(""), "transport")
        assert.strictEqual((yield* read(", transport: kafkajs")).transport, "kafkajs")
        const own = yield* read("", { EVENTBUS_CLUSTERS_DEFAULT_TRANSPORT: "kafka" })
        assert.strictEqual(own.transport, "kafka")
        assert.throws(() => KafkaJs.make(own), /KafkaJs\.transport: found 'kafka', allowed is "kafkajs"/)
        assert.deepStrictEqual(yield* issuesOf(Configuration.parse(withTransport(", transport: librdkafka"))), [
          'eventbus.clusters.default.transport: "librdkafka"; kafkajs or kafka'
        ])
      })
  )

  it.effect("ruling 84 a tokenEndpoint that is no URL is refused, as in code", () =>
    Effect.gen(function* () {
      const sasl = "{ mechanism: oauthbearer, tokenEndpoint: idp.example, clientId: a, clientSecret: b }"
      const text = `${withOrders()}\n  clusters: { default: { brokers: "h:9092", sasl: ${sasl} } }`
      assert.deepStrictEqual(yield* issuesOf(Configuration.parse(text)), [
        'eventbus.clusters.default.sasl.tokenEndpoint: "idp.example"; a URL of http or https, without user and password'
      ])
    })
  )

  it.effect("a secret whose file is missing or empty, or that is given twice, is refused", () =>
    Effect.gen(function* () {
      const message = Effect.fnUntraced(function* (line: string) {
        const path = yield* folder({ "app.yaml": withPassword(line), empty: "\n", secret: "hunter2" })
        const error = yield* Effect.flip(load(join(path, "app.yaml")))
        assert.notInclude(error.message, "hunter2")
        return error.issues.map((issue) => `${issue.path}: ${issue.found}`).join("\n")
      })
      const sasl = "eventbus.clusters.default.sasl"
      assert.include(yield* message("passwordFile: none"), `${sasl}.passwordFile: "none": no such file`)
      assert.include(yield* message("passwordFile: empty"), `${sasl}.password`)
      assert.include(
        yield* message("passwordFile: secret, password: hunter2"),
        `${sasl}.passwordFile: passwordFile beside password`
      )
    })
  )
})
