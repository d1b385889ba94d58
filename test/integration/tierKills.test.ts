/**
 * Consumers with retry tiers that are killed (kill -9) in each window between handler, publish and commit: every record ends handled or dead-lettered, and
 * what is repeated was in flight.
 */
import { assert } from "@effect/vitest"
import type { ConsumerRecord } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const partitions = 3
const perLife = 80

type Point = NonNullable<Journal.Task["diesAt"]>

/** Copies beyond the first of each record, by what it was first. */
const extra = (records: ReadonlyArray<ConsumerRecord.ConsumerRecord>): number =>
  records.length - new Set(records.map(({ value }) => Bus.text(value))).size

/** Records of a topic that were begun and are not committed. */
const inFlight = (journal: Journal.Journal, topic: string, groupId: string) =>
  Effect.map(Bus.committed(groupId, topic), (committed) => {
    const begun = journal.started().filter((entry) => entry.topic === topic)
    const open = begun.filter(({ partition, offset }) => BigInt(offset) >= (committed.get(partition) ?? 0n))
    return new Set(open.map(({ partition, offset }) => `${partition}/${offset}`)).size
  })

/** One life after the other, each of which ends at its point, and a last one that lives on. */
const lives = (bootstrap: ReadonlyArray<string>, points: (topics: ReadonlyArray<string>) => ReadonlyArray<Point>) =>
  Effect.gen(function* () {
    const name = Bus.fresh("lives")
    const topics = [name, `${name}.retry-1`, `${name}.retry-2`, `${name}.DLT`]
    const read = topics.slice(0, 3)
    const journal = yield* Journal.make
    yield* Bus.createTopic(name, partitions)
    /** A new process; the same member of the group, so that it need not wait for the death of the last one to be noticed. */
    const launch = (diesAt?: Point) =>
      Program.run("pipeline.ts", {
        brokers: bootstrap,
        journal: journal.path,
        ...{ name, topic: name, groupId: name, handlerMillis: 0, blockMillis: 0 },
        ...(diesAt === undefined ? {} : { diesAt }),
        settings: { staticMembership: true }
      })

    let published = 0
    const mayRepeat = read.map(() => 0)
    const publish = Effect.suspend(() => {
      const batch = Bus.numbered(name, partitions, perLife, published)
      published += perLife
      return Bus.publish(batch)
    })
    for (const point of points(topics)) {
      yield* publish
      const program = yield* launch(point)
      const exit = yield* program.exit.pipe(
        Effect.timeoutOrElse({
          duration: "40 seconds",
          orElse: () => Effect.die(new Error(`it lived past ${JSON.stringify(point)}: ${program.output()}`))
        })
      )
      assert.deepStrictEqual(exit, { code: null, signal: "SIGKILL" }, program.output())
      for (const [index, topic] of read.entries()) mayRepeat[index]! += yield* inFlight(journal, topic, name)
    }
    yield* publish
    const last = yield* launch()
    const values = Array.from({ length: published }, (_, value) => value)
    const passed = () => new Set(journal.done().map(({ value }) => Number(value)))
    const passing = values.filter((value) => value % 4 !== 3)
    yield* Bus.until("all are handled that can be", () => passed().size === passing.length, {
      otherwise: () => [passing.filter((value) => !passed().has(value)), last.output()]
    })
    for (const topic of read) yield* Bus.lagIsZero(name, topic)
    return { name, topics, read, journal, values, passed: passed(), mayRepeat }
  })

const story = (
  bootstrap: ReadonlyArray<string>,
  title: string,
  points: (topics: ReadonlyArray<string>) => ReadonlyArray<Point>
) =>
  Bus.story(bootstrap, title, () =>
    Effect.gen(function* () {
      const { topics, read, journal, values, passed, mayRepeat } = yield* lives(bootstrap, points)
      const [, retry1, retry2, letters] = yield* Effect.forEach(topics, (topic) => Bus.readAll(topic))
      const distinct = (records: ReadonlyArray<ConsumerRecord.ConsumerRecord>) =>
        Array.from(new Set(records.map(({ value }) => Number(Bus.text(value))))).sort((a, b) => a - b)

      // Each is where it belongs, and nowhere else.
      assert.deepStrictEqual(
        Array.from(passed).sort((a, b) => a - b),
        values.filter((value) => value % 4 !== 3)
      )
      assert.deepStrictEqual(
        distinct(retry1!),
        values.filter((value) => value % 4 > 0)
      )
      assert.deepStrictEqual(
        distinct(retry2!),
        values.filter((value) => value % 4 > 1)
      )
      assert.deepStrictEqual(
        distinct(letters!),
        values.filter((value) => value % 4 === 3)
      )
      for (const letter of letters!) {
        const attempts = letter.headers.find(({ key }) => key === "x-eventbus-total-attempts")
        assert.strictEqual(Bus.text(attempts?.value), "3")
      }

      // A repeated record was begun and not committed by a process that ended, or is a copy of such a record.
      const begunAgain = read.map((topic) => {
        const begun = journal.started().filter((entry) => entry.topic === topic)
        return begun.length - new Set(begun.map(({ partition, offset }) => `${partition}/${offset}`)).size
      })
      for (const [index, count] of begunAgain.entries()) assert.isAtMost(count, mayRepeat[index]!, read[index])
      const repeats = [retry1!, retry2!, letters!].map(extra)
      assert.isAtMost(repeats[0]!, mayRepeat[0]!)
      assert.isAtMost(repeats[1]!, mayRepeat[1]! + repeats[0]!)
      assert.isAtMost(repeats[2]!, mayRepeat[2]! + repeats[1]!)
    })
  )

KafkaSuite.shared("processes with retry tiers, killed with -9", (bootstrap) => {
  const at = (point: Point["point"], topic: string | undefined, nth: number): Point => ({ point, topic: topic!, nth })

  story(
    bootstrap,
    "OFF-06 RTY-15 NFR-01 between the handler, the publish to tier 1, and the commit of the main topic",
    ([main, retry1]) => [
      at("publish", retry1, 20),
      at("acknowledged", retry1, 20),
      at("commit", main, 3),
      at("committed", main, 3)
    ]
  )

  story(
    bootstrap,
    "OFF-06 RTY-15 NFR-01 while records wait in tier 1, and between tier 1 and tier 2",
    ([, retry1, retry2]) => [
      at("delay", retry1, 2),
      at("publish", retry2, 10),
      at("acknowledged", retry2, 10),
      at("commit", retry1, 2)
    ]
  )

  story(
    bootstrap,
    "OFF-06 DLT-02 NFR-01 while records wait in tier 2, and between the last tier and the dead letter topic",
    ([, , retry2, letters]) => [
      at("delay", retry2, 2),
      at("publish", letters, 10),
      at("acknowledged", letters, 10),
      at("commit", retry2, 2)
    ]
  )
})
