/**
 * Concurrent requests on connections whose sessions a real broker ends after 3 seconds (KIP-368). Nothing here repeats a request, so a request that fails is
 * counted. `REAUTH_SECONDS` is how long each mechanism is tried, 10 by default.
 */
import { assert } from "@effect/vitest"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Logger, Redacted, References, Schedule } from "effect"
import { openTransport } from "../../packages/kafka/src/internal/transport.ts"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { fetchRequest } from "../../packages/kafka-client/src/internal/fetch/fetchRequest.ts"
import { sendCommit } from "../../packages/kafka-client/src/internal/offsets/committedOffsets.ts"
import { PartitionLog } from "../../packages/kafka-client/src/internal/publish/partitionLog.ts"
import { PendingRecords } from "../../packages/kafka-client/src/internal/publish/pendingRecords.ts"
import { encodeProduce } from "../../packages/kafka-client/src/internal/publish/produceRequest.ts"
import { check } from "../../packages/kafka-client/src/internal/wire/failures.ts"
import { call, metadataOf } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import type { NodeClient } from "../../packages/kafka-client/src/Transport.ts"
import * as Bus from "../integration/bus.ts"

const seconds = Number(process.env.REAUTH_SECONDS ?? 10)
const tokenMillis = 5_000

const produceBody = (topic: string, version: number) => {
  const log = new PartitionLog(topic, 0)
  const record = { topic, key: null, value: Bus.bytes("x"), timestamp: Date.now() }
  log.add(new PendingRecords().add(record, 1_000, () => {}, 0, undefined))
  const settings = { acks: -1, timeoutMillis: 15_000, transactionalId: undefined } as const
  return encodeProduce(settings, version, [{ log, batch: log.take(1, 1_000_000)! }])
}

/** Each kind of request, sent once. */
const requests = (node: NodeClient, topic: string) => ({
  metadata: Effect.flatMap(metadataOf(node, [topic]), ({ topicMetadata }) =>
    check(...topicMetadata.map(({ topicErrorCode }) => topicErrorCode))
  ),
  produce: Effect.flatMap(
    call(node, "Produce", (version) => produceBody(topic, version)),
    ({ topics }) => check(...topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
  ),
  fetch: Effect.flatMap(
    call(node, "Fetch", fetchRequest("read_committed", [{ topic, partition: 1, offset: 0n, maxBytes: 1_000 }], 300)),
    ({ errorCode, partitions }) => check(errorCode, ...partitions.map((partition) => partition.errorCode))
  ),
  commit: sendCommit(node, topic, { memberId: "", generation: -1 }, [{ topic, partition: 0, offset: 1n }])
})

/** Sends four of each kind at a time until the time is over. Returns the numbers of requests, by kind, and the failures. */
const sendAll = Effect.fnUntraced(function* (node: NodeClient, topic: string) {
  const answered = { metadata: 0, produce: 0, fetch: 0, commit: 0 }
  const failures: Array<string> = []
  const endsAt = performance.now() + seconds * 1_000
  const kinds = requests(node, topic)
  const repeat = (kind: keyof typeof kinds) =>
    Effect.gen(function* () {
      while (performance.now() < endsAt) {
        const failed = yield* Effect.match(kinds[kind], { onSuccess: () => undefined, onFailure: (each) => each })
        if (failed === undefined) answered[kind]++
        else failures.push(`${kind}: ${failed.type} ${failed.detail}`)
        // Leaves some time for the other mechanism's requests.
        yield* Effect.sleep("5 millis")
      }
    })
  const sixteen = (["metadata", "produce", "fetch", "commit"] as const).flatMap((kind) => Array(4).fill(kind))
  yield* Effect.forEach(sixteen, repeat, { concurrency: "unbounded", discard: true })
  return { answered, failures }
})

KafkaSuite.own(
  "sessions of 3 seconds",
  { security: "sasl", oauth: true, config: { "connections.max.reauth.ms": "3000" } },
  (it) => {
    let tokens = 0
    const token = Effect.sync(() => {
      tokens++
      return { value: Redacted.make(RealKafka.token("app", tokenMillis)), expiresAt: Date.now() + tokenMillis }
    })
    const mechanisms: ReadonlyArray<readonly [string, (password: string) => KafkaJs.Sasl]> = [
      [
        "SCRAM-SHA-512",
        (password) => ({ mechanism: "scram-sha-512", username: "app", password: Redacted.make(password) })
      ],
      ["OAUTHBEARER", () => ({ mechanism: "oauthbearer", token })]
    ]
    for (const [name, saslOf] of mechanisms) {
      it.effect(
        `CLN-16 of 16 concurrent requests through renewals by ${name} none fails, on one pair of connections`,
        () =>
          Effect.gen(function* () {
            const { bootstrap: brokers, users } = yield* RealKafka.RealKafka
            const sasl = saslOf(users.app.password)
            const topic = Bus.fresh("renewed")
            yield* Bus.on({ brokers, sasl }, Bus.createTopic(topic, 2))
            const opened: Array<string> = []
            const log = Logger.make(({ message }) => {
              if (String(message).startsWith("Connected to")) opened.push(String(message))
            })
            const { answered, failures } = yield* Effect.gen(function* () {
              const cluster = yield* connect(securedOptions({ brokers, sasl, retries: 0 }, openTransport))
              const node = yield* cluster.node(1)
              // The broker has to make the topic of commits first.
              const coordinated = Effect.andThen(cluster.coordinator("group", topic), requests(node, topic).commit)
              yield* Effect.retry(coordinated, Schedule.spaced("100 millis"))
              return yield* sendAll(node, topic)
            }).pipe(
              Effect.scoped,
              Effect.provide(Logger.layer([log])),
              Effect.provideService(References.MinimumLogLevel, "Debug")
            )
            if (process.env.REAUTH_SECONDS !== undefined)
              console.log(name, { ...answered, tokens, opened: opened.length })
            assert.deepStrictEqual(failures, [])
            for (const count of Object.values(answered)) assert.isAtLeast(count, seconds)
            // One to the bootstrap address at most, and two to the node.
            assert.isAtMost(opened.length, 3)
            const ends = yield* Bus.on({ brokers, sasl }, Bus.logEnds(topic))
            assert.strictEqual(ends.get(0), BigInt(answered.produce))
          }),
        { timeout: seconds * 1_000 + 60_000, concurrent: true }
      )
    }
  }
)
