/** The time to read and check a file of many bindings, in a fresh process and once more. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Configuration } from "@eventbus/config"
import { Effect } from "effect"
import { make, medianAtMost, type TopicPlan } from "./harness/Benchmark.ts"
import { now, since } from "./harness/stopwatch.ts"

type Parameters = Readonly<Record<"bindings" | "again", number>>

const topic: TopicPlan<Parameters> = { lifetime: "run", partitions: 1 }

const short = (n: number): ReadonlyArray<string> => [
  `topic: orders-${n}`,
  `group-id: billing-${n}`,
  "concurrency: 3",
  "retry: { tiers: [1m, 5m, 12m] }"
]

/** The sample of the seed. */
const long = (n: number): ReadonlyArray<string> => [
  ...[`topic: orders-${n}`, `group-id: billing-${n}`, "listener-type: BATCH", "ack-mode: MANUAL_IMMEDIATE"],
  ...["concurrency: 3", "max-poll-records: 200", "max-poll-interval-ms: 600000", "session-timeout-ms: 45000"],
  ...["heartbeat-interval-ms: 10000", "auto-startup: true", "static-membership: true"],
  ...["batch-failure-strategy: SEEK_TO_FAILED", "ordering-mode: RELAXED_IN_RETRY"],
  ...[
    "retry:",
    "  tier0: { max-attempts: 3, initial-backoff-ms: 100, multiplier: 2.0, max-backoff-ms: 2000 }",
    "  tiers:"
  ],
  ...[10_000, 60_000, 300_000].flatMap((delay, tier) => [
    ...[
      `    - delay-ms: ${delay}`,
      "      max-attempts: 3",
      `      topic-suffix: retry-${tier + 1}`,
      "      concurrency: 1"
    ]
  ]),
  ...["  retryable-exceptions: [java.net.SocketTimeoutException, org.example.OptimisticLockingFailureException]"],
  ...[
    "  non-retryable-exceptions: [org.example.SchemaValidationException, org.example.BusinessRuleViolationException]"
  ],
  ...["  skip-to-tier-mapping: { javax.ws.rs.ServiceUnavailableException: 2 }"],
  ...["circuit-breaker:", "  enabled: true", "  failure-rate-threshold: 50.0", "  slow-call-rate-threshold: 80.0"],
  ...["  slow-call-duration-ms: 5000", "  wait-duration-in-open-state-ms: 60000", "  sliding-window-size: 100"],
  ...["  minimum-number-of-calls: 10", "  permitted-number-of-calls-in-half-open-state: 5"],
  ...["dlt: { topic-suffix: DLT, strategy: SCHEDULED_REPLAY, replay: { max-replays: 3, cooldown-ms: 3600000 } }"]
]

const file = (bindings: number, lines: (n: number) => ReadonlyArray<string>): string =>
  [
    "eventbus:",
    "  bindings:",
    ...Array.from({ length: bindings }, (_, n) => [
      `    orders-${n}:`,
      ...lines(n).map((line) => `      ${line}`)
    ]).flat()
  ].join("\n")

const load = (lines: (n: number) => ReadonlyArray<string>) =>
  Effect.fnUntraced(function* ({ bindings, again }: Parameters) {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "eventbus-bench-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true }))
    )
    const path = join(folder, "app.yaml")
    writeFileSync(path, file(bindings, lines))
    const times: Array<number> = []
    for (let time = 0; time <= again; time++) {
      const start = now()
      const configuration = yield* Configuration.load(path, { env: {} })
      times.push(since(start).millis)
      if (configuration.bindings.length !== bindings) return yield* Effect.fail("a binding is missing")
    }
    return { first: times.slice(0, 1), again: times.slice(1) }
  }, Effect.scoped)

export const configuration = make({
  name: "configuration",
  header: [
    "500 bindings from one YAML file, read and checked: short (four lines each), long (the sample of the guide, all of its keys each)",
    "first: the first file of a process; again: the same file ten times more"
  ],
  parameters: { bindings: 500, again: 10 },
  smoke: { bindings: 5, again: 1 },
  participants: {
    short: { topic, role: ({ parameters }) => load(short)(parameters) },
    long: { topic, role: ({ parameters }) => load(long)(parameters) }
  },
  measures: [
    { participant: "short", series: "first", target: medianAtMost(200) },
    { participant: "short", series: "again", target: medianAtMost(200) },
    // One megabyte in a process that has compiled nothing yet. This figure has no target.
    { participant: "long", series: "first" },
    { participant: "long", series: "again", target: medianAtMost(200) }
  ].map((measure) => ({ ...measure, label: measure.series, unit: "ms" }))
})
