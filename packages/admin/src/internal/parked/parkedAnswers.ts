/**
 * Turns parked keys into answers that JSON can hold, page by page. Without `payload`, nothing in them quotes a record.
 */
import { DeadLetterSelection, ParkedKeys } from "@eventbus/core"
import type { Payload } from "../../Mask.ts"
import type * as Answers from "../../ParkedAnswers.ts"
import { given, isoOf } from "../answersOf.ts"
import { textOf } from "../masking.ts"

/** Keys of a page, unless the caller says otherwise. */
const keysOfPage = 100

/** Most bytes of a key that an answer has. */
const shownBytes = 1_024

const decoder = new TextDecoder()

export const keyOf = (parked: ParkedKeys.ParkedKey, payload: Payload): Answers.ParkedKey => {
  const { topic, state, sinceMillis, dueMillis, tier, retryTopic, key, failure, followers } = parked
  const { hasMoreFollowers, isOwnedHere } = parked
  return {
    ...{ position: DeadLetterSelection.formatPosition(parked), topic, state, since: isoOf(sinceMillis) },
    ...given("due", dueMillis === undefined ? undefined : isoOf(dueMillis)),
    ...{ ...given("tier", tier), ...given("retryTopic", retryTopic) },
    ...given("key", textOf(payload, decoder.decode(key.subarray(0, shownBytes)))),
    ...given("exceptionClass", failure?.className),
    ...given("message", failure === undefined || failure.message === "" ? undefined : textOf(payload, failure.message)),
    ...{ ...given("followers", followers), hasMoreFollowers, isOwnedHere }
  }
}

/** Where a key stands among all: no two stand in the same, and it changes only with the state of the key. */
const orderOf = ({ state, sinceMillis, partition, offset, topic }: ParkedKeys.ParkedKey) =>
  [ParkedKeys.states.indexOf(state), sinceMillis, partition, offset, topic] as const

type Order = ReturnType<typeof orderOf>

const compare = (a: Order, b: Order): number => {
  const at = a.findIndex((part, index) => part !== b[index])
  return at === -1 ? 0 : a[at]! < b[at]! ? -1 : 1
}

const form = /^([0-3])\.(\d{1,16})\.(\d{1,10})\.(\d{1,19})\.([\w.-]{1,249})$/

const orderIn = (cursor: string): Order | undefined => {
  const [, state, since, partition, offset, topic] = form.exec(cursor) ?? []
  if (state === undefined || since === undefined || partition === undefined) return undefined
  if (offset === undefined || topic === undefined) return undefined
  return [Number(state), Number(since), Number(partition), BigInt(offset), topic]
}

/** Whether a text can be `next` of a page. */
export const isCursor = (text: string): boolean => form.test(text)

export interface Page {
  readonly limit?: number | undefined
  readonly page?: string | undefined
}

export const pageOf = (
  all: ReadonlyArray<ParkedKeys.ParkedKey>,
  { limit = keysOfPage, page }: Page,
  payload: Payload
): Omit<Answers.AllParked, "orderingMode"> => {
  const from = page === undefined ? undefined : orderIn(page)
  const sorted = all.map((key) => ({ key, place: orderOf(key) })).sort((a, b) => compare(a.place, b.place))
  const rest = from === undefined ? sorted : sorted.filter(({ place }) => compare(place, from) > 0)
  const shown = rest.slice(0, limit)
  const last = rest.length > shown.length ? shown.at(-1) : undefined
  const count = (state: ParkedKeys.State) => all.filter((key) => key.state === state).length
  return {
    keys: shown.map(({ key }) => keyOf(key, payload)),
    counts: {
      held: count("held"),
      waiting: count("waiting"),
      draining: count("draining"),
      stranded: count("stranded")
    },
    ...given("next", last?.place.join("."))
  }
}
