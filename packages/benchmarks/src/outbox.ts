/** The outbox against bare loops over the same table: draining, relaying, latency, the cost of a write, and a table full of finished rows. */

import { Outbox } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { Effect } from "effect"
import {
  type Measure,
  make,
  medianAtMost,
  type Participant,
  type Role,
  ratioAtLeast,
  type Target,
  type TopicPlan
} from "./harness/Benchmark.ts"
import { countRecords } from "./harness/kafka.ts"
import * as Transport from "./harness/transport.ts"
import { deliverAll, drainedBy, multi, ordered, single, type Work } from "./outbox/backlog.ts"
import * as Bare from "./outbox/bareLoops.ts"
import { type Database, mariadb, postgres, sqlite } from "./outbox/databases.ts"
import * as FinishedRows from "./outbox/finishedRows.ts"
import * as Latency from "./outbox/latency.ts"
import { writeCost } from "./outbox/writeCost.ts"

type Parameters = Readonly<Record<"rows" | "perSecond" | "seconds" | "warmup" | "transactions" | "doneRows", number>>

/** Most participants need no Kafka. */
const noTopic: TopicPlan<Parameters> = { lifetime: "run", partitions: 1 }
const relayTopic: TopicPlan<Parameters> = { lifetime: "round", partitions: 6 }

const alone = (role: Role<Parameters>): Participant<Parameters> => ({ topic: noTopic, role })

const drain = (database: Database, work: Work, hotShare = 0) =>
  alone(({ parameters }) => drainedBy({ database, rows: parameters.rows, hotShare }, work))

/** Every record must be in the topic exactly once. */
const toKafka = (work: (round: { readonly brokers: ReadonlyArray<string>; readonly topic: string }) => Work) =>
  ({
    topic: relayTopic,
    role: Effect.fnUntraced(function* (round) {
      let relayed = 0
      const counted: Work = (rows) => Effect.tap(work(round)(rows), () => Effect.sync(() => (relayed += rows)))
      const pace = yield* drainedBy({ database: postgres, rows: round.parameters.rows }, counted)
      const found = yield* countRecords(round.brokers, round.topic)
      if (found !== relayed) return yield* Effect.fail(`${found} records of ${relayed} events`)
      return pace
    })
  }) satisfies Participant<Parameters>

const relay = toKafka(
  ({ brokers, topic }) =>
    (rows) =>
      Effect.gen(function* () {
        const listener = yield* KafkaRelay.listener({ topic })
        yield* deliverAll(Outbox.orderedNodes({ ...KafkaRelay.orderedSettings, onDone: "delete" }), listener)(rows)
      }).pipe(Effect.scoped, Effect.provide(Transport.layer({ brokers })))
)

const rateOf = (participant: string, against: string, target?: number): Measure => ({
  ...{ participant, against, series: "rate", unit: "events/s" },
  ...(target !== undefined && { target: ratioAtLeast(target) })
})

const millisOf = (participant: string, series: string, label: string, quantile: number, target?: Target): Measure => ({
  ...{ participant, series, label, quantile, unit: "ms" },
  ...(target !== undefined && { target })
})

export const outbox = make({
  name: "outbox",
  header: [
    "events of 500 bytes on PostgreSQL (MariaDB and SQLite where it says so); a backlog is of 100,000 events of 1,000 aggregates, and drained once before at a fifth of it",
    "bare loops take 500 rows at a time; ordered: half of the events belong to one aggregate; Kafka: acknowledged by all, 6 partitions",
    "latency: from the COMMIT being sent to the listener, 200 events/s for 5 s; write: a second insert and an event, beside one insert, per transaction"
  ],
  parameters: { rows: 100_000, perSecond: 200, seconds: 5, warmup: 1, transactions: 4000, doneRows: 1_000_000 },
  smoke: { rows: 500, perSecond: 20, seconds: 1, transactions: 20, doneRows: 1_000 },
  helpers: { relay: Latency.relay },
  participants: {
    "bare lock and mark": drain(postgres, () => Bare.lockAndMark),
    "single node, kept": drain(postgres, deliverAll(single("keep"))),
    "multi node, kept": drain(postgres, deliverAll(multi("keep"))),
    "bare lock and delete": drain(postgres, () => Bare.lockAndDelete),
    "single node, deleted": drain(postgres, deliverAll(single("delete"))),
    "bare bucket loop": drain(postgres, () => Bare.bucketReadAndDelete, 0.5),
    ordered: drain(postgres, deliverAll(ordered("delete")), 0.5),
    "bare loop to Kafka": toKafka(
      ({ brokers, topic }) =>
        () =>
          Bare.lockSendAndDelete(brokers, topic)
    ),
    "relay to Kafka": relay,
    "bare loop, MariaDB": drain(mariadb, () => Bare.lockAndMark),
    "single node, MariaDB": drain(mariadb, deliverAll(single("keep"))),
    "bare loop, SQLite": drain(sqlite, () => Bare.lockAndMark),
    "single node, SQLite": drain(sqlite, deliverAll(single("keep"))),
    "hot path": alone(Latency.hotPath),
    "another process": alone(Latency.anotherProcess),
    write: alone(writeCost),
    "1,000,000 DONE rows, claiming": alone(FinishedRows.claiming),
    "1,000,000 DONE rows, purging": alone(FinishedRows.purging)
  },
  measures: [
    rateOf("single node, kept", "bare lock and mark", 0.5),
    rateOf("multi node, kept", "bare lock and mark"),
    rateOf("single node, deleted", "bare lock and delete", 0.6),
    rateOf("ordered", "bare bucket loop", 0.4),
    rateOf("relay to Kafka", "bare loop to Kafka", 0.8),
    rateOf("single node, MariaDB", "bare loop, MariaDB", 0.5),
    rateOf("single node, SQLite", "bare loop, SQLite", 0.5),
    millisOf("hot path", "millis", "p50", 0.5, medianAtMost(1.5)),
    millisOf("hot path", "millis", "p99", 0.99, medianAtMost(6)),
    millisOf("another process", "millis", "p50", 0.5, medianAtMost(5)),
    millisOf("another process", "millis", "p99", 0.99),
    millisOf("write", "event", "with an event", 0.5),
    millisOf("write", "plain", "with a second insert", 0.5),
    { participant: "write", series: "ratio", label: "ratio", unit: "x", target: medianAtMost(1.35) },
    millisOf("1,000,000 DONE rows, claiming", "full", "500 rows", 0.5),
    {
      ...{ participant: "1,000,000 DONE rows, claiming", series: "ratio", label: "against none", unit: "x" },
      target: medianAtMost(1.3)
    },
    millisOf("1,000,000 DONE rows, claiming", "lag", "20,000 pending, health", 0.5),
    millisOf("1,000,000 DONE rows, purging", "alone", "a writer before", 0.99),
    millisOf("1,000,000 DONE rows, purging", "meanwhile", "a writer, p99", 0.99),
    millisOf("1,000,000 DONE rows, purging", "pause", "a writer, longest", 0.5, medianAtMost(100)),
    { participant: "1,000,000 DONE rows, purging", series: "rate", label: "pace", unit: "rows/s" }
  ]
})
