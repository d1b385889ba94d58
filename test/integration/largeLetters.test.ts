/**
 * Dead letters with values of 1 MB on a real Kafka. Kafka sends whole records, so groups, pages, plans and rehearsals read all values; a process that keeps one of them, or that
 * reads more than a few at a time, needs more memory than it has here.
 *
 * `LARGE_LETTERS` sets how many there are: 60 by default. When it is set, the figures are printed.
 */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { incompressible } from "../scenarios/bus.ts"
import * as Bus from "./bus.ts"
import * as Letters from "./letters.ts"
import * as Program from "./program.ts"

const letters = Number(process.env["LARGE_LETTERS"] ?? 60)
const isMeasured = process.env["LARGE_LETTERS"] !== undefined
const partitions = 5
const valueBytes = 1_000_000

const value = incompressible(valueBytes)

const letterOf = (topic: string, index: number) =>
  Letters.letterOf(
    topic,
    { index, partition: index % partitions, value },
    { "last-exception-class": "Down", "last-exception-fingerprint": `v1-${String(index % 7).padStart(16, "0")}` }
  )

/** The answer of `largeLetterReader.ts`; sizes in MiB. */
interface Told {
  readonly counts: Readonly<Record<string, number>>
  readonly left: number
  readonly most: number
  readonly resident: number
  readonly millis: Readonly<Record<string, number>>
}

KafkaSuite.shared("large dead letters", (bootstrap) => {
  Bus.story(
    bootstrap,
    `OPS-03 ${letters} of 1 MB are grouped, counted, listed, planned and rehearsed in a heap of 96 MB, and no value is kept`,
    () =>
      Effect.gen(function* () {
        const topic = Bus.fresh("large-letters")
        for (const name of [topic, `${topic}.DLT`]) yield* Bus.createTopic(name, partitions)
        for (let index = 0; index < letters; index += 5)
          yield* Bus.publish(
            Array.from({ length: Math.min(5, letters - index) }, (_, at) => letterOf(topic, index + at))
          )
        const program = yield* Program.launch(
          Program.pathOf("largeLetterReader.ts"),
          JSON.stringify({ brokers: bootstrap, topic }),
          ["--max-old-space-size=96", "--expose-gc"]
        )
        assert.deepStrictEqual(yield* program.exit, { code: 0, signal: null }, program.output())
        const told: Told = JSON.parse(program.output().trim())
        if (isMeasured) console.log(told)
        const { counts, left, most } = told
        assert.deepStrictEqual(
          { ...counts, first: 0 },
          {
            ...{ grouped: letters, counted: letters, first: 0, shown: letters, planned: letters, passes: letters },
            valueBytes
          }
        )
        assert.isAtMost(counts["first"]!, 20)
        assert.isAtMost(left, 8)
        assert.isAtMost(most, 48)
      }),
    600_000
  )
})
