import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

// Each worker and each program that a test starts loads hundreds of modules: it finds them compiled by those that ran before it.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/compiled")

/** Small files that take long: with other versions, in clones, with many pods, with waits for sessions and health checks, and the contract on a real Kafka. */
const slow =
  /\/test\/(neighbours|packaging)\/|\/(groupMoves|connector|longHandler|testingOnKafka)\.test|\/kafka(js)?\/test\/contract\.test/

/** Begins with the slow files. By default the largest files come first, and a small slow one would run alone at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const [quickFiles = [], slowFiles = []] = await Promise.all(
      [false, true].map((isSlow) => super.sort(files.filter(({ moduleId }) => slow.test(moduleId) === isSlow)))
    )
    return [...slowFiles, ...quickFiles]
  }
}

/** Files that keep nothing in their process for the next file. Loading the modules takes longer than most of them: a worker loads them once. */
const sharing = [
  "packages/*/test/**/*.test.ts",
  "test/{cases,integration,outbox,scenarios,security,transports}/**/*.test.ts"
]

/** Of these folders: files with settings or listeners of their own process, whose memory is measured, or that compute for minutes. */
const isolated = [
  "packages/{examples,kafka-runner}/test/**/*.test.ts",
  "packages/core/test/breaker/ownership.test.ts",
  "packages/core/test/replay/replayOnKafka.test.ts",
  "packages/node/test/outbox/*.test.ts",
  "packages/testkit/test/TestBus.test.ts",
  "test/cases/c{03,30,31,35,37,38,41,42,43,56,64}-*.test.ts",
  "test/integration/*{igures,eap,argeLetters}*.test.ts",
  "test/scenarios/lifecycle/{churn,shutdown}.test.ts"
]

/** Of the tests that run on kafkajs: those that are run on connections of our own, too. All of them can be: `TRANSPORT=kafka`. */
const onOwnConnections = [
  "packages/kafkajs/test/failures.test.ts",
  "packages/nestjs/test/onKafka.test.ts",
  "test/integration/{commandLine,secured,processKilled,rebalanceStorm}.test.ts"
]

export default defineConfig({
  // Tests of @eventbus/nestjs have decorated classes, compiled as Nest compiles them.
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  test: {
    // Starts one real Kafka for the run when the first test file asks for it.
    globalSetup: ["packages/kafka-runner/src/internal/globalSetup.ts"],
    // Most of the time a test waits for a broker, a database or a process: a machine with two cores runs three files at a time, too.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    sequence: { sequencer: SlowFirst },
    // Bounds of a hang, wide enough for a machine that is busy with something else.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "isolated",
          include: [
            "test/!(cases|integration|outbox|scenarios|security|transports)/**/*.test.ts",
            "test/*.test.ts",
            ...isolated
          ]
        }
      },
      {
        extends: true,
        test: { name: "sharing modules", isolate: false, include: sharing, exclude: isolated }
      },
      {
        extends: true,
        test: { name: "connections of our own", isolate: false, include: onOwnConnections, env: { TRANSPORT: "kafka" } }
      }
    ]
  }
})
