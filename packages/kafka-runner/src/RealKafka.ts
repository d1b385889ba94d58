/**
 * A real Apache Kafka for tests and benchmarks: one or three brokers in KRaft mode, on free ports of the loopback device. When the Scope closes, or this
 * process dies (also by kill -9), the brokers are killed and their data is removed.
 *
 * Needs Java 17+. Maven downloads the jars on first use, into the user's cache folder.
 */
import { randomUUID } from "node:crypto"
import { mkdtemp, open, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Context, type Duration, Effect, Layer, type Scope } from "effect"
import type * as ClientCertificate from "./ClientCertificate.ts"
import { type Compiler, spawnGuarded } from "./internal/brokerProcess.ts"
import { makeClusterProcesses } from "./internal/clusterProcesses.ts"
import { type Users, users } from "./internal/credentials.ts"
import { randomStart } from "./internal/freePorts.ts"
import { install } from "./internal/installation.ts"
import { prepareCluster } from "./internal/prepareCluster.ts"
import { setScramPassword } from "./internal/scramPassword.ts"
import { type Security, usesSasl, usesTls } from "./internal/serverProperties.ts"
import { topicLeaders } from "./internal/topicLeaders.ts"
import { InvalidOptions, type RealKafkaError, type StartFailed } from "./RealKafkaError.ts"

export type { Compiler } from "./internal/brokerProcess.ts"
export type { User, Users } from "./internal/credentials.ts"
export type { Security } from "./internal/serverProperties.ts"

/** The cluster to start. */
export interface Options {
  /** Number of brokers. With three, topics have three replicas and `min.insync.replicas` 2. Default 1. */
  readonly brokers?: 1 | 3
  /** Security protocol of the clients' listener. SASL offers PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. Default `plaintext`. */
  readonly security?: Security
  /** Only `users.admin` may do anything until ACLs grant it. Needs SASL. Default `false`. */
  readonly acls?: boolean
  /** SASL also offers OAUTHBEARER, with unsigned tokens (see `token`). Default `false`. */
  readonly oauth?: boolean
  /** Clients need a certificate that the brokers trust. Needs TLS. Default `false`. */
  readonly clientCertificates?: boolean
  /** More broker properties; they override the runner's. Default none. */
  readonly config?: Readonly<Record<string, string>>
  /** Java compiler of the brokers. `c1` starts with half the CPU time; `c2` is faster once warm, for benchmarks. Default `c1`. */
  readonly compiler?: Compiler
  /** Longest time of `start` and of each `restart`, from launching the processes to the cluster's answer. Default 3 minutes. */
  readonly startTimeout?: Duration.Input
}

/** A running cluster. */
export interface Cluster {
  /** `host:port` of each broker, in the order of the node ids 1, 2, 3. */
  readonly bootstrap: ReadonlyArray<string>
  /** The certificate authority of the brokers as PEM; undefined without TLS. */
  readonly ca: string | undefined
  /** The users of a cluster with SASL, valid in each mechanism. */
  readonly users: Users
  /** A certificate that the brokers trust; undefined without `clientCertificates`. */
  readonly client: ClientCertificate.ClientCertificate | undefined
  /** Replaces the client certificates (PEM) that brokers trust. A broker reads them when it starts. */
  readonly trustClients: (...certificates: ReadonlyArray<string>) => Effect.Effect<void>
  /** Sets a user's SCRAM password, and creates the user if needed. The PLAIN password and open connections stay. */
  readonly setPassword: (username: string, password: string) => Effect.Effect<void>
  /** The node ids of the leaders of a topic's partitions, in partition order. The topic must exist. */
  readonly leaders: (topic: string) => Effect.Effect<ReadonlyArray<number>>
  /** Kills a broker with kill -9 and waits for its end. Its data stays for `restart`. */
  readonly kill: (nodeId: number) => Effect.Effect<void>
  /** Stops a broker with SIGTERM: it hands its partitions over first. */
  readonly stop: (nodeId: number) => Effect.Effect<void>
  /** Suspends a broker with SIGSTOP: it accepts connections and answers nothing, until `thaw`. */
  readonly freeze: (nodeId: number) => Effect.Effect<void>
  /** Lets a frozen broker go on. */
  readonly thaw: (nodeId: number) => Effect.Effect<void>
  /** Changes bytes of a partition's first log segment on a broker's disk, in place, as a failing disk does. `edit` changes the bytes, not their number. */
  readonly editLog: (
    nodeId: number,
    topic: string,
    partition: number,
    edit: (log: Buffer) => void
  ) => Effect.Effect<void>
  /** Starts a killed or stopped broker with its old port and data, and waits until the cluster lists it. */
  readonly restart: (nodeId: number) => Effect.Effect<void, StartFailed>
}

/** The service of a running cluster. */
export class RealKafka extends Context.Service<RealKafka, Cluster>()("@eventbus/kafka-runner/RealKafka") {}

/** Starts a cluster and waits until it serves. It ends with the Scope. Fails with `RealKafkaError`. */
export const start = (options: Options = {}): Effect.Effect<Cluster, RealKafkaError, Scope.Scope> =>
  // Processes follow the real clock, also in a test on TestClock.
  Effect.provideService(startCluster(options), Clock.Clock, Clock.Clock.defaultValue())

/** `start` as a layer. */
export const layer = (options: Options = {}): Layer.Layer<RealKafka, RealKafkaError> =>
  Layer.effect(RealKafka, start(options))

/** An unsigned JWT for a cluster with `oauth`, valid for `lifeMillis` from now on. A negative life makes an expired token. */
export const token = (username: string, lifeMillis: number): string => {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url")
  const seconds = Date.now() / 1000
  // Issued a minute ago, since the clocks of two processes may differ a little.
  const claims = { sub: username, iat: seconds - 60, exp: seconds + lifeMillis / 1000, jti: randomUUID() }
  return `${encode({ alg: "none" })}.${encode(claims)}.`
}

const startCluster = Effect.fnUntraced(function* (options: Options) {
  const { brokers = 1, security = "plaintext", config = {}, compiler = "c1" } = options
  const { acls = false, oauth = false, clientCertificates = false } = options
  const startTimeout = options.startTimeout ?? "3 minutes"
  if (acls && !usesSasl(security)) {
    return yield* new InvalidOptions({ detail: "acls need users to grant to: choose security sasl or sasl_ssl." })
  }
  if (oauth && !usesSasl(security)) {
    return yield* new InvalidOptions({ detail: "oauth is a mechanism of SASL: choose security sasl or sasl_ssl." })
  }
  if (clientCertificates && !usesTls(security)) {
    return yield* new InvalidOptions({ detail: "client certificates need TLS: choose security ssl or sasl_ssl." })
  }
  const installation = yield* install
  const runFolder = yield* temporaryFolder
  const request = { brokers, security, acls, oauth, clientCertificates, config, compiler, firstPort: randomStart() }
  const prepared = yield* prepareCluster(installation, runFolder, request)
  const processes = yield* makeClusterProcesses(prepared, (command) => spawnGuarded(runFolder, command))
  yield* Effect.forEach(prepared.brokers.keys(), processes.launch, { discard: true })
  yield* processes.awaitReady(startTimeout)

  const [{ internalAddress } = { internalAddress: "" }] = prepared.brokers.values()
  return RealKafka.of({
    bootstrap: [...prepared.brokers.values()].map((broker) => broker.address),
    ca: prepared.ca,
    users,
    client: prepared.client,
    trustClients: (...certificates) =>
      Effect.promise(async () => {
        if (prepared.trustedClients !== undefined) await writeFile(prepared.trustedClients, certificates.join(""))
      }),
    setPassword: (username, password) => setScramPassword(internalAddress, username, password),
    leaders: (topic) => topicLeaders(internalAddress, topic),
    kill: (nodeId) => processes.end(nodeId, "SIGKILL"),
    stop: (nodeId) => processes.end(nodeId, "SIGTERM"),
    freeze: (nodeId) => processes.signal(nodeId, "SIGSTOP"),
    thaw: (nodeId) => processes.signal(nodeId, "SIGCONT"),
    editLog: (nodeId, topic, partition, edit) =>
      Effect.promise(async () => {
        const folder = prepared.brokers.get(nodeId)!.dataFolder
        const file = await open(join(folder, `${topic}-${partition}`, `${"0".repeat(20)}.log`), "r+")
        const log = await file.readFile()
        edit(log)
        await file.write(log, 0, log.length, 0)
        await file.close()
      }),
    restart: (nodeId) => Effect.andThen(processes.launch(nodeId), processes.awaitReady(startTimeout))
  })
})

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "eventbus-kafka-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
)
