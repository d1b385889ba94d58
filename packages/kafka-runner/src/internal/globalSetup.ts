/** Runs in vitest's main process, and owns the shared Kafka of a test run. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Exit, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { RealKafka } from "../index.ts"
import type { RealKafkaError } from "../RealKafkaError.ts"
import { requireTools } from "./installation.ts"
import type { Answer, Question } from "./sharedKafka.ts"

const configuredBrokers = process.env.KAFKA_BROKERS?.split(",").map((broker) => broker.trim())

const answerOf = (bootstrap: Effect.Effect<ReadonlyArray<string>, RealKafkaError>): Effect.Effect<Answer> =>
  bootstrap.pipe(
    Effect.map((servers): Answer => ({ _tag: "Available", bootstrap: servers })),
    Effect.catch((error) => Effect.succeed<Answer>({ _tag: "Unavailable", reason: error.message })),
    Effect.tap(reportMissing)
  )

/** Prints the reason once per run, however many suites are skipped. */
const reportMissing = (answer: Answer): Effect.Effect<void> =>
  Effect.sync(() => {
    if (missingIsReported || answer._tag === "Available") return
    missingIsReported = true
    console.error(answer.reason)
  })
let missingIsReported = false

const answers = Effect.fnUntraced(function* (scope: Scope.Scope) {
  const started = yield* Effect.cached(RealKafka.start().pipe(Scope.provide(scope)))
  const shared =
    configuredBrokers === undefined
      ? Effect.map(started, (cluster) => cluster.bootstrap)
      : Effect.succeed(configuredBrokers)
  return {
    "/shared": answerOf(shared),
    "/tools": answerOf(Effect.as(requireTools, []))
  } satisfies Record<Question, Effect.Effect<Answer>>
})

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const scope = Scope.makeUnsafe()
  const byQuestion = await Effect.runPromise(answers(scope))
  const server = createServer((request, response) => {
    const answer =
      request.url === "/shared" || request.url === "/tools" ? byQuestion[request.url] : Effect.succeed(null)
    Effect.runPromise(answer).then((value) => response.end(JSON.stringify(value)))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  project.provide("sharedKafka", `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return async () => {
    server.close()
    server.closeAllConnections()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
