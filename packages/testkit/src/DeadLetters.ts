/**
 * Assertions on dead letters: their number, their contents and their headers (connector seed §10, `DltAssertions`).
 *
 * Each assertion takes a topic that bindings read, or a dead letter topic, and fails with `Unexpected`, which lists all dead letters that are there.
 *
 * ```ts
 * import { DeadLetters } from "@eventbus/testkit"
 *
 * export const expectation = DeadLetters.expectExactly("orders", [
 *   { key: "o-2", reason: "NON_RETRYABLE", exception: "CardDeclined" }
 * ])
 * ```
 */
import type { DeadLetterRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as TestRecord from "./internal/target/testRecord.ts"
import { TestBus } from "./TestBus.ts"
import { Unexpected } from "./Unexpected.ts"

type Letter = DeadLetterRecord.DeadLetterRecord

/** The expected fields of a dead letter. An absent field matches anything. */
export interface Expected {
  /** The key as text. */
  readonly key?: string | null
  /** The value as text. */
  readonly value?: string | null
  /** Header `x-eventbus-dlt-reason`. */
  readonly reason?: NonNullable<Letter["dltReason"]>
  /** Class of the last error: its `_tag`, or the class name. */
  readonly exception?: string
  /** Message of the last error. */
  readonly message?: string
  /** Handler calls over all tiers. */
  readonly totalAttempts?: number
  /** The last tier that the record was in; 0 is the main topic. */
  readonly tier?: number
  /** Topic in which the record was first published. */
  readonly originalTopic?: string
  /** Its partition there. */
  readonly originalPartition?: number
  /** Its offset there. */
  readonly originalOffset?: bigint
  /** Headers that the dead letter must have, as text. Other headers are allowed. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Asserts the number of dead letters. */
export const expectCount = Effect.fnUntraced(function* (topic: string, count: number) {
  const letters = yield* read(topic)
  if (letters.length !== count) return yield* unexpected(topic, count === 0 ? "none" : `${count}`, letters)
})

/** Asserts that nothing was dead-lettered. */
export const expectNone = (topic: string) => expectCount(topic, 0)

/** Asserts that at least one dead letter matches. */
export const expectOne = Effect.fnUntraced(function* (topic: string, expected: Expected) {
  const letters = yield* read(topic)
  if (!letters.some((letter) => matches(letter, expected))) {
    return yield* unexpected(topic, `one with ${show(expected)}`, letters)
  }
})

/** Asserts that these dead letters are there and no others, in any order. */
export const expectExactly = Effect.fnUntraced(function* (topic: string, expected: ReadonlyArray<Expected>) {
  const letters = yield* read(topic)
  const left = [...letters]
  for (const each of expected) {
    const index = left.findIndex((letter) => matches(letter, each))
    if (index === -1) break
    left.splice(index, 1)
  }
  if (left.length > 0 || letters.length !== expected.length) {
    const all = expected.length === 0 ? "none" : `exactly\n${expected.map(show).join("\n")}`
    return yield* unexpected(topic, all, letters)
  }
})

const read = (topic: string): Effect.Effect<ReadonlyArray<Letter>, never, TestBus> =>
  TestBus.use(({ deadLetters }) => deadLetters(topic))

const unexpected = (topic: string, expected: string, letters: ReadonlyArray<Letter>) =>
  Effect.fail(
    new Unexpected({
      subject: `dead letters of '${topic}'`,
      expected,
      found:
        letters.length === 0
          ? "none"
          : `${letters.length}\n${letters.map((letter) => show(describe(letter))).join("\n")}`
    })
  )

/** Every field of `Expected` but the headers. */
const describe = (letter: Letter): Required<Omit<Expected, "headers" | "reason">> & Pick<Expected, "reason"> => ({
  key: TestRecord.show(letter.key) ?? null,
  value: TestRecord.show(letter.value) ?? null,
  ...(letter.dltReason === undefined ? {} : { reason: letter.dltReason }),
  exception: letter.lastExceptionClass,
  message: letter.lastExceptionMessage,
  totalAttempts: letter.totalAttempts,
  tier: letter.tierHistory.at(-1)?.tier ?? 0,
  originalTopic: letter.originalTopic,
  originalPartition: letter.originalPartition,
  originalOffset: letter.originalOffset
})

const matches = (letter: Letter, { headers = {}, ...expected }: Expected): boolean => {
  const found = new Map<string, unknown>(Object.entries(describe(letter)))
  const texts = new Map(letter.headers.map(({ key, value }) => [key, TestRecord.show(value)]))
  return (
    Object.entries(expected).every(([name, value]) => value === undefined || found.get(name) === value) &&
    Object.entries(headers).every(([name, value]) => texts.get(name) === value)
  )
}

const show = (fields: Expected): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === "bigint" ? value : JSON.stringify(value)}`)
    .join(" ")
