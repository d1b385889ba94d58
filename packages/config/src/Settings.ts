/**
 * Every key of a configuration, with its default, range and meaning (connector seed §4.1): one schema for files, variables, code and requests.
 *
 * Names are those of the seed. A file writes them as they are here (`groupId`) or in kebab case (`group-id`); the `Ms` of a duration may be left
 * out. Times are milliseconds here; written as a number of them, or as text such as `10s`, `1m 30s`, `10 seconds` or `PT10S`.
 */
import { Schema } from "effect"
import {
  addresses,
  decimal,
  duration,
  flag,
  oneOf,
  secret,
  text,
  topicName,
  whole,
  withDefault
} from "./internal/schema/leaves.ts"
import { renamedFrom } from "./internal/schema/otherNames.ts"

/** A key that may be absent, without a value then. */
const optional = Schema.optionalKey

/** A part of the configuration; absent, it has the defaults of its keys. */
const section = <F extends Schema.Struct.Fields>(description: string, fields: F) =>
  Schema.Struct(fields).annotate({ description })

export const Tier0 = section("Attempts inside one delivery.", {
  maxAttempts: whole("Handler calls in all, the first included; 1 means no retries. Default 3.").pipe(withDefault(3)),
  initialBackoffMs: duration("Wait after the first failure. Default 100 ms.").pipe(withDefault(100)),
  multiplier: decimal("Factor from one wait to the next. Default 2.", { minimum: 1 }).pipe(withDefault(2)),
  maxBackoffMs: duration("Cap of a single wait, jitter included. Default 2 s.").pipe(withDefault(2_000)),
  jitter: decimal("A wait varies by up to this share of itself. Default 0.2.", { minimum: 0, maximum: 1 }).pipe(
    withDefault(0.2)
  )
})

export const Tier = section("One retry topic.", {
  delayMs: duration("How long a record waits before each delivery in this tier."),
  maxAttempts: whole("Deliveries in this tier. Default 3.").pipe(withDefault(3)),
  topicSuffix: optional(topicName("Name of its topic behind `{topic}.`. Default: what `naming` says, `retry-{n}`.")),
  concurrency: whole("Handlers that run at once in this tier, in one process. Default 1.").pipe(withDefault(1))
})

const errorPattern = text(
  "An error's class name or tag, also qualified (`java.net.SocketTimeoutException`), or an expression on its message: `/timed? out/i`."
)

export const Retry = section("How a failing record is tried again.", {
  tier0: Tier0.pipe(withDefault({})),
  tiers: optional(
    Schema.Array(Schema.Union([duration("The tier's delay; the rest has its defaults."), Tier])).annotate({
      description:
        "Retry topics, in the order in which a record passes through them, by their delay or in full. Default: 10 s, 1 min, 5 min; none with orderingMode STRICT."
    })
  ),
  retryableExceptions: Schema.Array(errorPattern)
    .annotate({ description: "Errors that are tried again in place. Default: all." })
    .pipe(withDefault([])),
  nonRetryableExceptions: Schema.Array(errorPattern)
    .annotate({ description: "Errors that go to the dead letter topic at once. Default: none." })
    .pipe(withDefault([])),
  skipToTierMapping: Schema.Record(Schema.String, whole("The tier that follows the attempts in place, from 1."))
    .annotate({ description: "Error to the tier that it goes to. Default: none." })
    .pipe(withDefault({})),
  equalDelays: oneOf("`share`: neighbouring tiers of the same delay use one topic. Default refuse.", [
    "refuse",
    "share"
  ]).pipe(withDefault("refuse")),
  consumer: oneOf("Whether the tiers share the main topic's group, or have `{groupId}.retry`. Default shared.", [
    "shared",
    "separate"
  ]).pipe(withDefault("shared")),
  partitions: optional(whole("Partitions of a retry topic that is made. Default: as many as the source.")),
  replicationFactor: optional(
    whole("Replication factor of a retry topic that is made. Default: the source's.", { minimum: 1, maximum: 32_767 })
  )
})

const percent = (description: string) => decimal(description, { minimum: 0, maximum: 100, above: true })
const calls = (description: string) => whole(description, { minimum: 1, maximum: 1_000_000 })

export const CircuitBreaker = section("Stops handling while a dependency is down.", {
  enabled: flag("Default false.").pipe(withDefault(false)),
  failureRateThreshold: percent("Percent of failures at which it opens, inclusive. Default 50.").pipe(withDefault(50)),
  slowCallRateThreshold: percent("Percent of slow calls at which it opens, inclusive. Default 80.").pipe(
    withDefault(80)
  ),
  slowCallDurationMs: duration("A delivery that takes longer is slow. Default 5 s.", 1).pipe(withDefault(5_000)),
  waitDurationInOpenStateMs: duration("How long it stays open before it finds out. Default 1 min.", 1).pipe(
    withDefault(60_000)
  ),
  slidingWindowSize: calls("Calls (or seconds, by slidingWindowType) that the rates are taken over. Default 100.").pipe(
    withDefault(100)
  ),
  slidingWindowType: oneOf("Default count.", ["count", "time"]).pipe(withDefault("count")),
  minimumNumberOfCalls: calls("No rate is judged before so many calls. Default 10.").pipe(withDefault(10)),
  permittedNumberOfCallsInHalfOpenState: calls("Calls that find out. Default 5.").pipe(withDefault(5)),
  automaticPauseOnOpen: flag("The binding shows PAUSED while it is open. Default true.").pipe(withDefault(true)),
  openBackoff: optional(
    section("Each reopening waits longer. Default: no.", {
      multiplier: decimal("Factor from one wait to the next.", { minimum: 1 }),
      maxWaitDurationMs: duration("The longest wait.", 1)
    })
  ),
  probeTimeoutMs: duration("How long the handler's probe may take. Default 10 s.", 1).pipe(withDefault(10_000))
})

export const Dlt = section("What becomes of dead letters.", {
  topic: optional(topicName("Full name of the dead letter topic; topicSuffix gives way. Default: what `naming` says.")),
  topicSuffix: optional(
    topicName("Name of the dead letter topic behind `{topic}.`. Default: what `naming` says, `DLT`.")
  ),
  strategy: oneOf("ALERT_AND_STORE and CUSTOM need the handler's onDeadLetter. Default STORE_ONLY.", [
    "STORE_ONLY",
    "ALERT_AND_STORE",
    "SCHEDULED_REPLAY",
    "CUSTOM"
  ]).pipe(withDefault("STORE_ONLY")),
  alertTimeoutMs: duration("How long an alert may take. Default 30 s.", 1).pipe(withDefault(30_000)),
  replay: section("Of SCHEDULED_REPLAY, and of replays by command.", {
    maxReplays: whole("A record that was replayed so often stays. Default 3.", { minimum: 0 }).pipe(withDefault(3)),
    cooldownMs: duration("Records younger than this wait. Default 1 h.").pipe(withDefault(3_600_000)),
    batchSize: whole("Most records of one run. Default 100.").pipe(withDefault(100))
  }).pipe(withDefault({})),
  headers: section("Other systems' headers beside ours. Default: none.", {
    spring: optional(oneOf("Spring Kafka's, with its binary encodings.", ["retry-topic", "plain"])),
    brokers: flag("The five headers of the brokers package. Default false.").pipe(withDefault(false)),
    trailJson: flag("`x-eventbus-trail`, the tiers as JSON. Default false.").pipe(withDefault(false))
  }).pipe(withDefault({}))
})

const required = {
  topic: topicName("The Kafka topic to read."),
  groupId: text("The consumer group.")
}

const common = {
  handler: optional(text("Name of the handler. Default: the binding's name.")),
  listenerType: oneOf("SINGLE: offsets are acknowledged record by record; BATCH: per batch. Default SINGLE.", [
    "SINGLE",
    "BATCH"
  ]).pipe(withDefault("SINGLE")),
  ackMode: oneOf(
    "MANUAL_IMMEDIATE commits before the next record, MANUAL in the background. Default MANUAL_IMMEDIATE.",
    ["MANUAL", "MANUAL_IMMEDIATE"]
  ).pipe(withDefault("MANUAL_IMMEDIATE")),
  commitIntervalMs: duration("How long MANUAL gathers finished offsets. Default 200 ms.").pipe(withDefault(200)),
  concurrency: whole("Consumers (group members) in this process. Default 1.").pipe(withDefault(1)),
  maxPollRecords: optional(whole("`max.poll.records`, most records of a batch. Default 50 for SINGLE, 200 for BATCH.")),
  maxPollIntervalMs: duration(
    "`max.poll.interval.ms`: 70 % of it is what a delivery may take. Default 10 min.",
    1
  ).pipe(withDefault(600_000)),
  sessionTimeoutMs: duration(
    "`session.timeout.ms`: 3 x heartbeatIntervalMs or more; brokers take 6 s and more by default. Default 45 s.",
    1_000
  ).pipe(withDefault(45_000)),
  heartbeatIntervalMs: duration("`heartbeat.interval.ms`. Default 10 s.", 100).pipe(withDefault(10_000)),
  rebalanceTimeoutMs: duration(
    "`rebalance.timeout.ms`: how long giving up a partition may take. Default 60 s.",
    1
  ).pipe(withDefault(60_000)),
  fetchMaxWaitMs: duration("`fetch.max.wait.ms`. Default 100 ms.").pipe(withDefault(100), renamedFrom("maxWaitMs")),
  maxPartitionFetchBytes: whole("`max.partition.fetch.bytes`. Default 1048576.").pipe(
    withDefault(1_048_576),
    renamedFrom("maxBytesPerPartition")
  ),
  autoStartup: flag("Start on registration. Default true.").pipe(withDefault(true)),
  staticMembership: flag("`group.instance.id` is `{binding}-{hostname}-{index}`. Default false.").pipe(
    withDefault(false)
  ),
  cluster: text("Alias of the cluster. Default `default`.").pipe(withDefault("default")),
  autoOffsetReset: oneOf("Where a group without a committed offset starts. Default earliest.", [
    "earliest",
    "latest"
  ]).pipe(withDefault("earliest")),
  isolationLevel: oneOf("`isolation.level`. Default read_committed.", ["read_committed", "read_uncommitted"]).pipe(
    withDefault("read_committed"),
    renamedFrom("isolation")
  ),
  processingOrder: oneOf("What may overlap inside a partition. Default partition: nothing.", [
    "partition",
    "key",
    "unordered"
  ]).pipe(withDefault("partition")),
  maxInFlight: optional(
    whole("Handlers running at once over the whole binding. Default: no bound for processingOrder partition, else 16.")
  ),
  maxBufferedRecords: whole("Records fetched but not handled, per consumer. Default 50000.").pipe(withDefault(50_000)),
  maxBufferedBytes: whole("The same in bytes. Default 16777216.").pipe(withDefault(16_777_216)),
  batchFailureStrategy: oneOf("Of BATCH, when a record has used up its attempts. Default SEEK_TO_FAILED.", [
    "SEEK_TO_FAILED",
    "DLQ_AND_CONTINUE"
  ]).pipe(withDefault("SEEK_TO_FAILED")),
  orderingMode: oneOf("STRICT: no record overtakes another, so no tiers. Default RELAXED_IN_RETRY.", [
    "RELAXED_IN_RETRY",
    "STRICT"
  ]).pipe(withDefault("RELAXED_IN_RETRY")),
  onExhausted: oneOf("What happens when all attempts are used up; halt with STRICT only. Default dead-letter.", [
    "dead-letter",
    "halt"
  ]).pipe(withDefault("dead-letter")),
  naming: oneOf("How retry and dead letter topics are called. Default standard.", [
    "standard",
    "dotted",
    "dashed",
    "perGroup"
  ]).pipe(withDefault("standard")),
  missingTopics: oneOf(
    "`create` makes missing retry and dead letter topics, `wait` keeps the record, `require` reads nothing before they are there. Default create.",
    ["create", "wait", "require"]
  ).pipe(withDefault("create")),
  shutdownTimeoutMs: duration("How long a stop waits for running handlers. Default 30 s.").pipe(withDefault(30_000)),
  retry: Retry.pipe(withDefault({})),
  circuitBreaker: CircuitBreaker.pipe(withDefault({})),
  dlt: Dlt.pipe(withDefault({}))
}

/** TopicBindingProperties of the seed. */
export const Binding = section("One topic that a group reads.", { ...required, ...common })

/** Settings of all bindings of a file. Each binding may override them. */
export const Defaults = section("Settings of all bindings; each binding's own win.", {
  topic: optional(required.topic),
  groupId: optional(required.groupId),
  ...common
})

/** The twin of a key, which takes the path of a file with its value, relative to the configuration. */
const fileWith = (key: string) => optional(text(`A file with the ${key}; a line break at its end is left out.`))

const pem = (description: string) => text(`${description} PEM.`)

export const Ssl = section("TLS.", {
  ca: optional(pem("The authorities to trust, instead of those that Node.js knows.")),
  cert: optional(pem("The client's certificate (mutual TLS).")),
  key: optional(secret("The client's private key. PEM.")),
  caFile: fileWith("ca"),
  certFile: fileWith("cert"),
  keyFile: fileWith("key"),
  passphraseFile: fileWith("passphrase"),
  passphrase: optional(secret("Of the private key.")),
  servername: optional(text("The host name that the certificate must name. Default: the broker's host.")),
  rejectUnauthorized: flag("false accepts every certificate: for experiments only. Default true.").pipe(
    withDefault(true)
  )
})

const password = ["username", "password"] as const
const clientCredentials = ["tokenEndpoint", "clientId", "clientSecret"] as const

export const Sasl = section("How to authenticate.", {
  mechanism: oneOf("The mechanism.", ["plain", "scram-sha-256", "scram-sha-512", "oauthbearer"]),
  username: optional(text("The user. Of plain and scram, required.")),
  password: optional(secret("The user's password. Of plain and scram, required.")),
  tokenEndpoint: optional(text("Where tokens come from, by the client credentials grant. Of oauthbearer, required.")),
  clientId: optional(text("The client's id. Of oauthbearer, required.")),
  clientSecret: optional(secret("The client's secret. Of oauthbearer, required.")),
  scope: optional(text("The scope of tokens. Of oauthbearer. Default: the server's own.")),
  credentialsIn: optional(
    oneOf("Where the server wants id and secret. Of oauthbearer. Default header.", ["header", "form"])
  ),
  passwordFile: fileWith("password"),
  clientSecretFile: fileWith("clientSecret")
}).check(
  Schema.makeFilter(({ mechanism, ...keys }) => {
    const isToken = mechanism === "oauthbearer"
    const others = isToken ? password : [...clientCredentials, "scope" as const, "credentialsIn" as const]
    return [
      ...(isToken ? clientCredentials : password)
        .filter((key) => keys[key] === undefined)
        .map((key) => ({ path: [key], issue: `a text, which mechanism ${mechanism} needs, or ${key}File` })),
      ...others
        .filter((key) => keys[key] !== undefined)
        .map((key) => ({ path: [key], issue: `no such key with mechanism ${mechanism}` }))
    ]
  })
)

/** How to reach a cluster. */
export const Cluster = section("One Kafka cluster.", {
  brokers: Schema.Union([
    addresses("`bootstrap.servers`: host:port, several with commas."),
    Schema.Array(addresses("host:port, several with commas.")).check(Schema.isMinLength(1))
  ]).annotate({ description: "`bootstrap.servers`: one or more host:port." }),
  clientId: text("`client.id`. Default eventbus.").pipe(withDefault("eventbus")),
  ssl: optional(
    Schema.Union([flag("true trusts the authorities that Node.js knows."), Ssl]).annotate({
      description: "TLS. Default: none."
    })
  ),
  sasl: optional(Sasl),
  connectionTimeoutMs: duration("How long one connection attempt may take. Default 3 s.", 100).pipe(withDefault(3_000)),
  requestTimeoutMs: duration("`request.timeout.ms`. Default 30 s.", 100).pipe(withDefault(30_000)),
  retries: whole("How often connecting is repeated before it fails. Default 3.", { minimum: 0 }).pipe(withDefault(3)),
  metadataMaxAgeMs: duration("`metadata.max.age.ms`. Default 10 s.", 1).pipe(withDefault(10_000))
})

/** A whole file. */
export const Root = section("Configuration of the Event Bus Connector.", {
  include: optional(
    Schema.Union([text("A file."), Schema.Array(text("A file."))]).annotate({
      description: "Files that this one is laid over, relative to it; later ones over earlier ones."
    })
  ),
  eventbus: section("The connector.", {
    clusters: optional(
      Schema.Record(Schema.String, Cluster).annotate({
        description: "Clusters by alias. `default` is the one of bindings that name none."
      })
    ),
    defaults: optional(Defaults),
    bindings: Schema.Record(Schema.String, Binding).annotate({ description: "Bindings by name." })
  })
})
