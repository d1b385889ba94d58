/**
 * The second act of the demo: order per key. One customer's card fails, and later orders of that customer wait in order. Another customer's order is held until an
 * operator skips it. All orders lie in one partition, and those of the other customers are charged meanwhile.
 */
import { Binding, Broker, EventBusConnector, type ParkedKeys } from "@eventbus/core"
import { Effect, Layer, Schedule } from "effect"
import { Cluster } from "./cluster.ts"
import * as Evidence from "./evidence.ts"
import { binding, Cards, customerOf, name, publish } from "./subscriptions.ts"

const orders = ["ann-1", "bob-1", "eve-1", "ann-2", "cyd-1", "eve-2", "bob-2", "ann-3", "cyd-2"]
const skipped = "eve-1"
const meanwhile = ["bob-1", "cyd-1", "bob-2", "cyd-2"]

/** Gives `say` one line for each step, and returns one sentence for each problem: none when every customer was charged in order. */
export const tell = Effect.fnUntraced(function* (say: (line: string) => void) {
  const { names } = yield* Cluster
  const cards = yield* Cards
  const broker = yield* Broker.Broker
  cards.set("ann", "fails")
  cards.set("eve", "blocked")
  yield* publish(broker, names.subscriptions, orders)
  say(`${orders.length} orders in one partition, keyed by customer: ${orders.join(" ")}`)
  const connector = yield* start
  const parked = yield* connector.parked(name)
  // The list reads the retry topic of the whole group, so that it shows what has arrived there.
  const found = yield* until(parked.list, (keys) => waitsWith(keys, "ann", 2) && waitsWith(keys, "eve", 1))
  yield* until(charged, (done) => meanwhile.every((order) => done.includes(order)))
  for (const key of found) say(lineOf(key))
  const before = yield* charged
  say(`charged meanwhile: ${before.join(" ")}`)

  cards.set("ann", "works")
  say("ann's card works again")
  yield* until(charged, (done) => done.includes("ann-3"))
  say(`charged in order: ${(yield* charged).slice(before.length).join(" ")}`)

  const held = found.find(({ state }) => state === "held")
  if (held === undefined) return ["no order was held for an operator"]
  cards.set("eve", "works")
  yield* parked.skip({ topic: held.topic, partition: held.partition, offset: held.offset }, "eve has a new card")
  say(`an operator lets eve go on: parked skip ${name} ${held.partition}@${held.offset}`)
  yield* until(charged, (done) => done.includes("eve-2"))
  const letters = yield* Evidence.readToEnd(broker, [names.subscriptions.deadLetters])
  const dead = letters.map(({ value }) => textOf(value))
  const after = (yield* charged).filter((order) => customerOf(order) === "eve")
  say(`dead-lettered: ${dead.join(" ")} · charged behind it: ${after.join(" ")}`)
  return problemsOf(before, yield* charged, dead)
}, Effect.scoped)

/** For the console: an order of fay that is held, with two that wait behind it. Her card works when this ends, so that a retry charges all three in order. */
export const hold = Effect.gen(function* () {
  const { names } = yield* Cluster
  const cards = yield* Cards
  const broker = yield* Broker.Broker
  const connector = yield* EventBusConnector.EventBusConnector
  const parked = yield* connector.parked(name)
  cards.set("fay", "blocked")
  yield* publish(broker, names.subscriptions, ["fay-1", "fay-2", "fay-3"])
  yield* until(parked.list, (keys) => waitsWith(keys, "fay", 2))
  cards.set("fay", "works")
})

const start = Effect.gen(function* () {
  const { names } = yield* Cluster
  const instance = Binding.layer(binding(names.subscriptions)).pipe(Layer.provideMerge(EventBusConnector.layer))
  return yield* EventBusConnector.EventBusConnector.pipe(Effect.provideContext(yield* Layer.build(instance)))
})

const charged = Effect.map(Cards, (cards) => [...cards.charged])

/** Whether the customer is parked, with so many orders behind the first one, which has arrived in its retry topic. */
const waitsWith = (keys: ReadonlyArray<ParkedKeys.ParkedKey>, customer: string, followers: number): boolean =>
  keys.some(
    (parked) => textOf(parked.key) === customer && parked.followers === followers && parked.retryTopic !== undefined
  )

const lineOf = ({ key, offset, state, retryTopic, followers }: ParkedKeys.ParkedKey): string => {
  const order = orders[Number(offset)] ?? "an unknown order"
  const where = state === "held" ? "has failed for good and is held for an operator" : `waits in ${retryTopic}`
  return `${order} ${where}; later orders of ${textOf(key)} that are parked behind it: ${followers}`
}

/** Compares what each customer should have seen with what was charged before and after the cards worked. */
const problemsOf = (
  before: ReadonlyArray<string>,
  all: ReadonlyArray<string>,
  dead: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const wanted = Map.groupBy(
    orders.filter((order) => order !== skipped),
    customerOf
  )
  const seen = Map.groupBy(all, customerOf)
  const wrong = Array.from(wanted, ([customer, inOrder]) => {
    const got = (seen.get(customer) ?? []).join(" ")
    return got === inOrder.join(" ") ? [] : [`${customer} was charged for '${got}', and not for '${inOrder.join(" ")}'`]
  }).flat()
  const late = meanwhile.filter((order) => !before.includes(order))
  const early = before.filter((order) => !meanwhile.includes(order))
  return [
    ...wrong,
    ...late.map((order) => `${order} was not charged while others waited`),
    ...early.map((order) => `${order} was charged before it was due`),
    ...(dead.join(" ") === skipped ? [] : [`dead-lettered were '${dead.join(" ")}', and not '${skipped}'`])
  ]
}

/** Asks until the answer is the wanted one, up to 30 seconds, and returns the last answer. `problemsOf` reports anything that is missing after that. */
const until = Effect.fnUntraced(function* <A, E, R>(ask: Effect.Effect<A, E, R>, holds: (answer: A) => boolean) {
  let last = yield* ask
  yield* Effect.suspend(() => Effect.map(ask, (answer) => (last = answer))).pipe(
    Effect.repeat({ until: holds, schedule: Schedule.spaced("50 millis") }),
    Effect.timeoutOption("30 seconds")
  )
  return last
})

const textOf = (bytes: Uint8Array | null): string => (bytes === null ? "" : decoder.decode(bytes))

const decoder = new TextDecoder()
