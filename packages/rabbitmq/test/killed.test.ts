/**
 * A consumer is killed with -9, and all connections are cut, under load: nothing is lost, and no more comes twice than was not acknowledged.
 *
 * In full: `RABBITMQ_ROUNDS=20 RABBITMQ_MESSAGES=20000 npx vitest run packages/rabbitmq/test/killed.test.ts`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Message, MessageConsumer } from "@eventbus/messaging"
import { Effect, Redacted } from "effect"
import { launch } from "../../../test/integration/program.ts"
import { numbers, textOf } from "./programs/task.ts"
import { proxyTo } from "./proxy.ts"
import { depth, onRabbitMq, reachable, testBroker } from "./rabbit.ts"

const rounds = Number(process.env["RABBITMQ_ROUNDS"] ?? 4)
const messages = Number(process.env["RABBITMQ_MESSAGES"] ?? 2_000)
const concurrency = 50
const prefetch = 200

const program = fileURLToPath(new URL("programs/consumer.ts", import.meta.url))

/** A file that goes with the scope. */
const journalFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "rabbitmq-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => {
    const path = join(folder, "journal")
    writeFileSync(path, "")
    return path
  }
)

/** The numbers that processes handled. A line that a kill cut short has no end and does not count. */
const handledIn = (journal: string): ReadonlyArray<number> =>
  readFileSync(journal, "utf8").split("\n").slice(0, -1).map(Number)

onRabbitMq("under load", () => {
  it.live(
    "kill -9 of the consumer and cut connections lose nothing, and repeat at most what was not acknowledged",
    () =>
      Effect.gen(function* () {
        const [host = ""] = reachable.hosts ?? []
        const proxy = yield* proxyTo(host)
        const { broker, prefix, queue } = yield* testBroker({ hosts: [proxy.address], heartbeat: "5 seconds" })
        const journal = yield* journalFile
        const { username = "", vhost = "", password = Redacted.make("") } = reachable
        const task = textOf({
          ...{ host: proxy.address, username, vhost, password: Redacted.value(password), prefix, journal }
        })
        // Declares the queue, so that the first messages have one.
        const declaring = MessageConsumer.make({ topics: [numbers], groupId: "killed", handle: () => Effect.void })
        yield* Effect.scoped(broker.consume(declaring, { onDeadLetter: () => {} }))

        const sending = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: messages }, (_, number) => number),
            (number) => Effect.flatMap(Message.of({ number }, numbers), (message) => broker.send(message)),
            { concurrency, discard: true }
          )
        )
        const step = Math.floor(messages / (rounds + 1))
        let cuts = 0
        for (let round = 1; round <= rounds; round++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const consumer = yield* launch(program, task)
              const { output } = consumer
              yield* until(() => new Set(handledIn(journal)).size >= round * step - step / 2, output)
              cuts += yield* proxy.cut
              yield* until(() => new Set(handledIn(journal)).size >= round * step, output)
              yield* consumer.end("SIGKILL")
            })
          )
        }
        const last = yield* launch(program, task)
        yield* until(() => new Set(handledIn(journal)).size === messages, last.output)
        yield* sending.pipe((fiber) => fiber.pollUnsafe() ?? Effect.die("the producer still sends"))
        yield* Effect.sleep("1 second")
        assert.strictEqual(yield* depth(queue("numbers", "killed")), 0)
        const repeated = handledIn(journal).length - messages
        console.log(`${messages} messages, ${rounds} kills, ${cuts} connections cut: 0 lost, ${repeated} repeated`)
        assert.isAtLeast(cuts, rounds * 2)
        // A kill and a cut each leave one prefetch unacknowledged; a cut also what the producer had sent without a confirmation.
        assert.isAtMost(repeated, rounds * (2 * prefetch + concurrency))
      }).pipe(Effect.scoped),
    Math.max(60_000, messages * 30)
  )
})

const until = (holds: () => boolean, output: () => string): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let waited = 0; !holds(); waited += 20) {
      if (waited > 60_000) return yield* Effect.die(`nothing moves any more; the consumer's output: ${output()}`)
      yield* Effect.sleep("20 millis")
    }
  })
