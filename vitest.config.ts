import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // Starts one real Kafka for the run when the first test file asks for it.
    globalSetup: ["packages/kafka-runner/src/internal/globalSetup.ts"],
    // Most of the time a test waits for a broker, a database or a process: a machine with two cores runs two files at a time, too.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Bounds of a hang, wide enough for a machine that is busy with something else.
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
