/** A group with many parked keys: how long its units take to begin after a restart and in a rebalance, and what partitions that stay notice. */
import { Effect } from "effect"
import type { Helper, Participant, Role, Samples, TopicPlan } from "../harness/Benchmark.ts"
import { runBindings } from "../harness/consumers.ts"
import { client, countingRecords, numbered, numberOf } from "../harness/kafka.ts"
import { wallMillis } from "../harness/stopwatch.ts"
import { ordered, unavailable } from "./keyedRecords.ts"
import type { Parameters } from "./parameters.ts"

const partitions = 6
/** Nothing that is parked comes back while the benchmark runs. */
const delayMillis = 3_600_000
/** The number of every record of a free key. */
const free = 0xffff_ffff

/** A head and a follower of each key. */
const topic: TopicPlan<Parameters> = {
  lifetime: "round",
  partitions,
  content: ({ parked, bytes }) => ({ records: 2 * parked, keys: parked, bytes })
}

/** Parks all keys and leaves the group. */
const parker: Role<Parameters> = (round) =>
  Effect.scoped(
    Effect.gen(function* () {
      const stored = yield* countingRecords(round.brokers, `${round.topic}.${round.groupId}.retry-1`)
      let failed = 0
      const binding = ordered(round, delayMillis, ({ value }) =>
        Effect.suspend(() => {
          if (numberOf(value!) < round.parameters.parked) failed++
          return unavailable
        })
      )
      yield* runBindings(round, [binding])
      yield* Effect.repeat(Effect.delay(stored, "20 millis"), {
        // Each retry partition has a claim beside the locks.
        while: (count) => failed < round.parameters.parked || count < round.parameters.parked + partitions
      })
      return {}
    })
  )

/** Publishes a record of a free key to each partition every 10 ms until it is asked to stop. */
const trickle: Role<Parameters> = (round) =>
  Effect.gen(function* () {
    const producer = client(round.brokers).producer()
    yield* Effect.promise(() => producer.connect())
    let sent = 0
    const send = Effect.promise(() =>
      producer.send({
        topic: round.topic,
        messages: Array.from({ length: partitions }, (_, partition) => ({
          ...{ partition, key: `free-${partition}-${sent++}`, value: numbered(free, round.parameters.bytes) }
        }))
      })
    )
    yield* Effect.raceFirst(Effect.forever(Effect.andThen(send, Effect.sleep("10 millis"))), round.stopped)
    yield* Effect.promise(() => producer.disconnect())
    return {}
  })

/** A member that notes when it handled a record of a free key, until it is asked to stop. It begins once it has handled one of each partition that it shares out. */
const member =
  (least: number): Role<Parameters> =>
  (round) =>
    Effect.gen(function* () {
      const partition: Array<number> = []
      const at: Array<number> = []
      const seen = new Set<number>()
      const binding = ordered(round, delayMillis, ({ value, record }) =>
        Effect.sync(() => {
          if (numberOf(value!) !== free) return
          partition.push(record.partition)
          at.push(wallMillis())
          if (!seen.has(record.partition) && seen.add(record.partition).size === least) round.begin()
        })
      )
      const started = wallMillis()
      yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), round.stopped))
      return { partition, at, started: [started] }
    })

export const parkedHelpers = { parker, trickle, owner: member(partitions), joiner: member(partitions / 2) }

const stop = ({ stop, samples }: Helper) => Effect.andThen(stop, samples)
/** A member that fails before it has begun says why in its answer. */
const begun = ({ begun, samples }: Helper) =>
  Effect.timeout(
    Effect.catch(begun, () => Effect.asVoid(samples)),
    "90 seconds"
  )

/** From the start of a member to its first record in each of the partitions. */
export const restart = (parks: boolean): Participant<Parameters> => ({
  topic: parks ? topic : { lifetime: "round", partitions },
  role: Effect.fnUntraced(function* ({ start }) {
    if (parks) yield* (yield* start("parker")).samples
    const publisher = yield* start("trickle")
    const owner = yield* start("owner")
    yield* begun(owner)
    const log = yield* stop(owner)
    yield* stop(publisher)
    const first = firstAt(log)
    return { begin: [Math.max(...first.values()) - log.started![0]!] }
  })
})

const firstAt = ({ partition = [], at = [] }: Samples): ReadonlyMap<number, number> => {
  const first = new Map<number, number>()
  for (const [index, one] of partition.entries()) if (!first.has(one)) first.set(one, at[index]!)
  return first
}

/** A second member joins: the gap of the partitions that move, and the longest one of those that stay. */
export const rebalanced: Participant<Parameters> = {
  topic,
  role: Effect.fnUntraced(function* ({ start, parameters }) {
    yield* (yield* start("parker")).samples
    const publisher = yield* start("trickle")
    const owner = yield* start("owner")
    yield* begun(owner)
    yield* Effect.sleep(parameters.presentMillis)
    const joined = wallMillis()
    const joiner = yield* start("joiner")
    yield* begun(joiner)
    yield* Effect.sleep(parameters.presentMillis)
    const ended = wallMillis()
    // The one that stays is asked for its log first: it takes nothing back.
    const stayed = yield* stop(owner)
    const moved = firstAt(yield* stop(joiner))
    yield* stop(publisher)
    return account(stayed, moved, joined, ended)
  })
}

const account = (
  { partition = [], at = [] }: Samples,
  moved: ReadonlyMap<number, number>,
  joined: number,
  ended: number
): Samples => {
  const last = new Map<number, number>()
  let stays = 0
  let moves = 0
  for (const [index, one] of partition.entries()) {
    const time = at[index]!
    const movedAt = moved.get(one)
    // Partitions that the owner gives up when it stops are first handled by the other behind the end.
    if (movedAt === undefined || movedAt > ended) {
      if (time > joined && time < ended) stays = Math.max(stays, time - (last.get(one) ?? time))
    }
    last.set(one, time)
  }
  for (const [one, movedAt] of moved) if (movedAt < ended) moves = Math.max(moves, movedAt - last.get(one)!)
  return { stays: [stays], moves: [moves] }
}
