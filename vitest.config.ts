import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // Starts one real Kafka for the run when the first test file asks for it.
    globalSetup: ["packages/kafka-runner/src/internal/globalSetup.ts"],
    testTimeout: 30_000
  }
})
