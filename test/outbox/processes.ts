/** Processes of this folder that tests start and kill, and a schema that they share. */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { EventEnvelope, type OutboxError, OutboxStore } from "@eventbus/outbox"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { pgIn } from "./clients.ts"
import { freshName } from "./databases.ts"

/** A schema known by name, so that other processes can use it. */
export const namedSchema = Effect.gen(function* () {
  const schema = freshName()
  const admin = pgIn("public", 1)
  const run = (text: string) =>
    SqlClient.SqlClient.use((sql) => sql.unsafe(text)).pipe(Effect.provide(admin, { local: true }), Effect.orDie)
  yield* Effect.acquireRelease(run(`CREATE SCHEMA ${schema}`), () => run(`DROP SCHEMA ${schema} CASCADE`))
  return schema
})

/** Starts a program and waits until it says that it is ready; killed at the end of the scope. */
export const startProcess = (program: "node" | "relay" | "consumer", ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.callback<ChildProcess>((resume) => {
      const script = fileURLToPath(new URL(`./processes/${program}.ts`, import.meta.url))
      const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "inherit"] })
      child.stdout.on("data", (text: Buffer) => {
        if (text.includes("ready")) resume(Effect.succeed(child))
      })
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** Inserts `aggregate/n` events in the given order. */
export const insert = Effect.fnUntraced(function* (
  ids: ReadonlyArray<string>
): Effect.fn.Return<
  void,
  OutboxError.InvalidEnvelope | OutboxError.PayloadTooLarge | OutboxError.OutboxStoreError,
  OutboxStore.OutboxStore
> {
  const store = yield* OutboxStore.OutboxStore
  const events = yield* Effect.forEach(ids, (eventId) =>
    EventEnvelope.make({ eventType: "E", eventId, aggregateType: "a", aggregateId: eventId.split("/")[0]!, payload: 1 })
  )
  yield* store.insertNew(events)
})

export const perAggregate = (ids: ReadonlyArray<string>) => ({ ...Object.groupBy(ids, (id) => id.split("/")[0]!) })
