/**
 * A process of the first version and one of this version share a group, its retry and dead letter topics, the journal of replays, a table of the outbox and keys of
 * idempotency, forward and back, with kill -9 in between (ruling 89). `NEIGHBOUR_SECONDS` is how long each of the eight steps lasts; 4 unless it is set.
 */
import { assert, it } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Bus from "../integration/bus.ts"
import * as Journal from "../integration/journal.ts"
import * as Program from "../integration/program.ts"
import { pgIn, pgLogin } from "../outbox/clients.ts"
import { freshName, skipPostgres } from "../outbox/databases.ts"
import { firstVersion, thisVersion } from "./firstVersion.ts"

const stepSeconds = Number(process.env["NEIGHBOUR_SECONDS"] ?? 4)
const partitions = 4

/** A schema of its own, as clients that are processes can use it. */
const schema = Effect.gen(function* () {
  const name = freshName()
  const run = (text: string) =>
    SqlClient.SqlClient.use((sql) => sql.unsafe(text).unprepared).pipe(
      Effect.provide(pgIn("public", 1), { local: true }),
      Effect.orDie
    )
  yield* Effect.acquireRelease(run(`CREATE SCHEMA ${name}`), () => run(`DROP SCHEMA ${name} CASCADE`))
  return name
})

const launch = (path: string, task: object) =>
  Effect.map(Program.launch(path, JSON.stringify(task)), (program) => ({
    ...program,
    version: path === thisVersion ? "new" : "first"
  }))

type Entry = Readonly<Record<"done" | "copied" | "once" | "crash", string | undefined>> & {
  readonly replay?: { readonly replayed: number }
}

const setUp = (bootstrap: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const name = Bus.fresh("neighbours")
    const first = yield* firstVersion
    const journal = yield* Journal.make
    const database = yield* schema
    const task = { brokers: bootstrap, journal: journal.path, name, login: pgLogin, schema: database }
    const entries = () => journal.entries() as unknown as ReadonlyArray<Entry>
    const values = (kind: "done" | "copied" | "once") => entries().flatMap((entry) => entry[kind] ?? [])
    const start = (version: "first" | "new", work: "all" | "once" | "migrate") =>
      launch(version === "new" ? thisVersion : first, { ...task, work })
    const migrate = Effect.fnUntraced(function* (version: "first" | "new") {
      const process = yield* start(version, "migrate")
      const { code } = yield* Effect.orDie(Effect.timeout(process.exit, "2 minutes"))
      assert.strictEqual(code, 0, process.output())
    })
    return { name, database, start, migrate, values, entries }
  })

/** Names that are not among the values. */
const missing = (expected: ReadonlyArray<string>, values: ReadonlyArray<string>): ReadonlyArray<string> => {
  const seen = new Set(values)
  return expected.filter((value) => !seen.has(value))
}

/** One in ten waits in the first tier, one in ten in the second, one in ten becomes a dead letter and is replayed. */
const fate = (n: number): string => `${n}${["", ":retry-1", ":retry-2", ":dead"][n % 10] ?? ""}`

KafkaSuite.shared("the first version as a neighbour", (bootstrap) => {
  if (skipPostgres) {
    it.skip("needs PostgreSQL")
    return
  }
  Bus.story(
    bootstrap,
    "RCH-15 ruling 89 forward and back with kill -9: no record of any tier, dead letter topic, journal, transaction or outbox table is lost or ignored",
    () =>
      Effect.gen(function* () {
        const { name, database, start, migrate, values, entries } = yield* setUp(bootstrap)
        for (const topic of [name, `${name}-tx`]) yield* Bus.createTopic(topic, partitions)
        for (const topic of [`${name}-events`, `${name}-copies`]) yield* Bus.createTopic(topic, 2)
        yield* migrate("first")
        const expected: Array<string> = []
        const copies: Array<string> = []
        const publish = Effect.gen(function* () {
          const batch = Array.from({ length: 40 }, (_, index) => fate(expected.length + index))
          yield* Bus.publish(
            batch.map((value, index) => ({ topic: name, key: Bus.bytes(String(index)), value: Bus.bytes(value) }))
          )
          expected.push(...batch)
          const more = Array.from({ length: 20 }, (_, index) => String(copies.length + index))
          yield* Bus.publish(
            more.map((value, index) => ({
              topic: `${name}-tx`,
              key: Bus.bytes(String(index)),
              value: Bus.bytes(value)
            }))
          )
          copies.push(...more)
        })
        const traffic = Effect.gen(function* () {
          for (let second = 0; second < stepSeconds; second++) {
            yield* publish
            yield* Effect.sleep("1 second")
          }
        })
        const processes = [yield* start("first", "all"), yield* start("first", "all")]
        const replace = Effect.fnUntraced(function* (index: number, by: "first" | "new") {
          yield* processes[index]!.end("SIGKILL")
          processes[index] = yield* start(by, "all")
          yield* traffic
        })
        yield* traffic
        yield* migrate("new")
        // Forward, back, and forward again: each process is killed in every company.
        for (const [index, by] of [
          [0, "new"],
          [1, "first"],
          [0, "new"],
          [1, "new"],
          [0, "first"],
          [1, "first"],
          [0, "new"]
        ] as const) {
          yield* replace(index, by)
        }
        const otherwise = () => ({
          done: missing(expected, values("done")).slice(0, 20),
          copied: missing(copies, values("copied")).slice(0, 20),
          crashes: entries()
            .flatMap(({ crash }) => crash ?? [])
            .slice(-5),
          outputs: processes.map(({ version, output }) => `${version}: ${output().slice(-600)}`)
        })
        const everything = () =>
          missing(expected, values("done")).length === 0 && missing(copies, values("copied")).length === 0
        yield* Bus.until("every record is handled", everything, { within: "150 seconds", otherwise })
        const pending = SqlClient.SqlClient.use((sql) =>
          sql.unsafe<{ readonly n: string }>(
            `SELECT COUNT(*) AS n FROM ${database}.outbox_event WHERE status IN (0, 2, 3)`
          )
        ).pipe(
          Effect.map(([row]) => Number(row?.n)),
          Effect.orDie
        )
        const client = yield* Layer.build(pgIn(database, 1))
        yield* Bus.until(
          "every event of the outbox is relayed",
          Effect.provideContext(
            Effect.map(pending, (count) => count === 0),
            client
          ),
          { within: "60 seconds", otherwise }
        )
        for (const process of processes) yield* process.end("SIGTERM")
        const relayed = (yield* Bus.readAll(`${name}-events`)).map(({ value }) => JSON.parse(Bus.text(value) ?? ""))
        assert.deepStrictEqual(missing(expected, relayed), [])
        // A transaction that a killed process left open ends with its timeout, and readers of committed records wait for that.
        const copied = () =>
          Bus.readAll(`${name}-copies`).pipe(
            Effect.map((all) => all.map(({ value }) => Bus.text(value) ?? "")),
            Effect.catchCause(() => Effect.succeed([] as ReadonlyArray<string>))
          )
        yield* Bus.until(
          "every copy is committed",
          Effect.map(copied(), (all) => missing(copies, all).length === 0),
          { within: "240 seconds" }
        )
        const seen = yield* copied()
        const replayed = entries().reduce((sum, { replay }) => sum + (replay?.replayed ?? 0), 0)
        console.log(
          `neighbours: ${expected.length} records, ${values("done").length - expected.length} handled again; ${replayed} replays of ${expected.length / 10} dead letters; ` +
            `${relayed.length} relayed; ${copies.length} transactions, ${seen.length - copies.length} copied again`
        )
        assert.isAbove(replayed, 0)
      }),
    900_000 + 10_000 * stepSeconds
  )

  Bus.story(
    bootstrap,
    "RCH-15 ruling 77 keys of idempotency that the first version stored are honoured: nothing of it is handled again",
    () =>
      Effect.gen(function* () {
        const { name, start, migrate, values } = yield* setUp(bootstrap)
        yield* Bus.createTopic(`${name}-once`, partitions)
        yield* migrate("first")
        const publish = (values: ReadonlyArray<string>) =>
          Bus.publish(
            values.map((value, index) => ({
              ...{ topic: `${name}-once`, partition: index % partitions },
              ...{ key: Bus.bytes(value), value: Bus.bytes(value) }
            }))
          )
        /** One in each partition: whoever has handled them has come past everything before them. */
        const markers = (title: string) => Array.from({ length: partitions }, (_, index) => `${title}-${index}`)
        const handles = (what: string, expected: ReadonlyArray<string>, otherwise: () => string) =>
          Bus.until(what, () => missing(expected, values("once")).length === 0, { within: "2 minutes", otherwise })
        const records = Array.from({ length: 200 }, (_, n) => String(n))
        yield* publish(records)
        const first = yield* start("first", "once")
        yield* handles("the first version has handled all", records, first.output)
        yield* Effect.sleep("1 second")
        // It has committed nothing: everything is delivered again.
        yield* first.end("SIGKILL")
        yield* migrate("new")
        const next = yield* start("new", "once")
        yield* publish(markers("forward"))
        yield* handles("the new version has come to the end", markers("forward"), next.output)
        assert.strictEqual(values("once").length, 200 + partitions)
        // Back: the first version does not know the newer keys, so what it has handled itself stays handled, and the markers are repeated at most.
        yield* next.end("SIGKILL")
        const last = yield* start("first", "once")
        yield* publish(markers("back"))
        yield* handles("the first version has come to the end again", markers("back"), last.output)
        const ofRecords = values("once").filter((value) => !value.includes("-"))
        assert.lengthOf(ofRecords, 200)
        assert.isAtMost(values("once").length, 200 + 3 * partitions)
      }),
    360_000
  )
})
