import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Small files that take a minute: with other versions, in clones, with many pods, and the contract on a real Kafka. */
const slow =
  /\/test\/(neighbours|packaging)\/|\/groupMoves\.test|\/testingOnKafka\.test|\/kafkajs\/test\/contract\.test/

/** Begins with the slow files. By default the largest files come first, and a small slow one would run alone at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const [quickFiles = [], slowFiles = []] = await Promise.all(
      [false, true].map((isSlow) => super.sort(files.filter(({ moduleId }) => slow.test(moduleId) === isSlow)))
    )
    return [...slowFiles, ...quickFiles]
  }
}

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // Starts one real Kafka for the run when the first test file asks for it.
    globalSetup: ["packages/kafka-runner/src/internal/globalSetup.ts"],
    // Most of the time a test waits for a broker, a database or a process: a machine with two cores runs two files at a time, too.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: SlowFirst },
    // Bounds of a hang, wide enough for a machine that is busy with something else.
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
