/**
 * Order per key through retry topics (`orderingMode: "PER_KEY"`) while processes are killed (kill -9), suspended past their session, started and stopped, and the broker is
 * killed. Records fail on their way, and some end as dead letters. Afterwards nothing is lost, no key is parked, and the effects of the handlers are in the order that
 * `orderKills/verdict.ts` describes. In the consumer protocol, which refuses `PER_KEY`, failed records are tried again in place.
 *
 * `ORDER_KILLS=all` asks for the long version: a process dies every 3 seconds forty times, ten are suspended, the group goes 1 → 5 → 2 three times, and the broker dies three times.
 */
import { assert } from "@effect/vitest"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, type Scope } from "effect"
import * as Bus from "./bus.ts"
import * as KeyedBinding from "./orderKills/keyedBinding.ts"
import * as KeyedGroup from "./orderKills/keyedGroup.ts"
import { partitions } from "./orderKills/keyedRecords.ts"
import * as KeyedTraffic from "./orderKills/keyedTraffic.ts"
import * as Verdict from "./orderKills/verdict.ts"

const isLong = process.env["ORDER_KILLS"] === "all"
const { kills, stops, rounds, fullGroup, brokerKills } = isLong
  ? { kills: 40, stops: 10, rounds: 3, fullGroup: 5, brokerKills: 3 }
  : { kills: 6, stops: 1, rounds: 1, fullGroup: 3, brokerKills: 1 }

const nothingIsParked = Effect.fnUntraced(function* (topic: string) {
  const binding = KeyedBinding.make(
    topic,
    () => "none",
    () => {}
  )
  const app = yield* Bus.start(binding)
  // A key may be given up in the moment before it is free: its next owner finds nothing behind it.
  const parked = Effect.orDie(Effect.flatMap(app.connector.parked(topic), ({ list }) => list))
  yield* Bus.until(
    "no key is parked",
    Effect.map(parked, (keys) => keys.length === 0)
  )
})

/** Everything is done, and the logs say so. */
const settled = Effect.fnUntraced(function* ({ topic, lines, members, leave, outputs }: KeyedGroup.KeyedGroup) {
  const lags = Effect.forEach([topic, ...KeyedBinding.retryTopics(topic)], (each) => Bus.lag(topic, each))
  let seen: ReadonlyArray<bigint> = []
  const isIdle = Effect.map(lags, (found) => {
    seen = found
    return found.every((lag) => lag === 0n)
  })
  yield* Bus.until("lag is 0", isIdle, { within: "180 seconds", otherwise: () => [seen, outputs()] })
  while (members.length > 0) yield* leave(0)

  if (KeyedBinding.parks) yield* nothingIsParked(topic)
  const sources = (yield* Bus.readAll(topic)).map(({ partition, offset, key, value }) => ({
    ...{ place: `${partition}-${offset}`, key: Bus.text(key) ?? "", n: Number(Bus.text(value)) }
  }))
  const letters = (yield* Bus.readAll(`${topic}.DLT`)).map(({ headers }) => {
    const header = (name: string) => Bus.text(headers.find(({ key }) => key === `x-eventbus-original-${name}`)?.value)
    return `${header("partition")}-${header("offset")}`
  })
  const verdict = Verdict.of(lines(), sources)
  if (isLong) console.log({ records: sources.length, lines: lines().length, ...verdict, faults: verdict.faults.length })
  assert.deepStrictEqual(verdict.faults.slice(0, 5), [], `${verdict.faults.length} faults`)
  assert.deepStrictEqual([...new Set(letters)].sort(), Verdict.letterPlaces(sources).toSorted())
  return verdict
})

KafkaSuite.own("order per key while processes and brokers die", {}, (it) => {
  const story = (
    title: string,
    storm: (group: KeyedGroup.KeyedGroup, cluster: RealKafka.Cluster) => Effect.Effect<void, unknown, Scope.Scope>,
    check: (verdict: Verdict.Verdict, group: KeyedGroup.KeyedGroup) => void
  ) =>
    it.effect(
      title,
      () =>
        Effect.gen(function* () {
          const cluster = yield* RealKafka.RealKafka
          const body = Effect.gen(function* () {
            const group = yield* KeyedGroup.make(cluster.bootstrap)
            const stop = yield* KeyedTraffic.start(group.topic)
            yield* Effect.orDie(storm(group, cluster))
            yield* stop
            check(yield* settled(group), group)
          })
          yield* Bus.on({ brokers: cluster.bootstrap }, body)
        }),
      isLong ? 900_000 : 240_000
    )

  story(
    `PKO-01 NFR-01 ${kills} processes die by kill -9, one every 3 seconds: rewind, never skip, and nothing is lost`,
    Effect.fnUntraced(function* (group) {
      yield* group.grow(3)
      for (let kill = 0; kill < kills; kill++) {
        yield* group.replace(kill % 3)
        yield* Effect.sleep("3 seconds")
      }
    }),
    ({ repeated, tenures }) => {
      assert.isAtLeast(tenures, kills)
      assert.isAtLeast(repeated, 1, "no process died with work that it had not committed")
    }
  )

  story(
    `PKO-01 NFR-01 ${stops} processes are suspended past their session: others go on, and what wakes skips nothing`,
    Effect.fnUntraced(function* (group) {
      yield* group.grow(3)
      for (let stop = 0; stop < stops; stop++) yield* group.suspend(stop % 3)
    }),
    ({ tenures }) => assert.isAtLeast(tenures, partitions + stops)
  )

  story(
    `PKO-02 PKO-01 PKO-04 members 1 → ${fullGroup} → 2, ${rounds} times: nothing is handled twice`,
    Effect.fnUntraced(function* (group) {
      yield* group.grow(1)
      for (let round = 0; round < rounds; round++) {
        yield* group.grow(fullGroup)
        while (group.members.length > 2) {
          yield* group.leave(0)
          yield* group.goesOn
        }
      }
    }),
    ({ tenures, late }, { lines }) => {
      assert.deepStrictEqual(Verdict.handledTwice(lines()), [])
      assert.strictEqual(late, 0)
      assert.isAtLeast(tenures, partitions + fullGroup)
    }
  )

  story(
    `PKO-01 NFR-01 the broker dies by kill -9 and comes back, ${brokerKills} times: rewind, never skip, and nothing is lost`,
    Effect.fnUntraced(function* (group, cluster) {
      yield* group.grow(3)
      for (let kill = 0; kill < brokerKills; kill++) {
        yield* cluster.kill(1)
        yield* cluster.restart(1)
        yield* group.goesOn
      }
    }),
    () => {}
  )
})
