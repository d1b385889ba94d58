/**
 * Two services in processes of their own read one topic with default names, and one of them is killed (kill -9) every five seconds (ruling 71). A bare kafkajs
 * client publishes, and another one observes all topics. `SERVICES_SECONDS` is how long records are published and processes are killed; 10 unless it is set.
 */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Random } from "effect"
import * as BareClient from "../../packages/kafkajs/test/bareClient.ts"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"
import { binding, type Call, failureClasses, fateOf, groupOf, type Service, services, tiers } from "./twoServices.ts"

const seconds = Number(process.env["SERVICES_SECONDS"] ?? 10)
const partitions = 4
/** Ten records each. */
const sendsPerSecond = 4

/** The retry topics that a service uses, in order. */
const retryTopics = (service: Service, topic: string) => tiers[service].map((_, index) => `${topic}.retry-${index + 1}`)

/** Publishes and kills for the given time; answers how often each process was killed. */
const storm = Effect.fnUntraced(function* <R>(
  publishTen: Effect.Effect<unknown>,
  killOne: (service: Service) => Effect.Effect<void, never, R>
) {
  const kills: Record<Service, number> = { billing: 0, shipping: 0 }
  for (let tick = 1; tick <= seconds * sendsPerSecond; tick++) {
    yield* publishTen
    if (tick % (5 * sendsPerSecond) === 0) {
      const victim = (yield* Random.nextBoolean) ? "billing" : "shipping"
      yield* killOne(victim)
      kills[victim]++
    }
    yield* Effect.sleep(1_000 / sendsPerSecond)
  }
  return kills
})

/** Starts both services, the publisher and the observer, and ends once all records are where they belong and everything is committed. */
const run = Effect.fnUntraced(function* (bootstrap: ReadonlyArray<string>, topic: string) {
  const journal = yield* Journal.make
  const calls = () => journal.entries() as unknown as ReadonlyArray<Call>
  const start = (service: Service) =>
    Program.launch(
      Program.pathOf("service.ts"),
      JSON.stringify({ brokers: bootstrap, ledger: journal.path, service, topic })
    )
  const programs = { billing: yield* start("billing"), shipping: yield* start("shipping") }
  const killOne = Effect.fnUntraced(function* (service: Service) {
    assert.deepStrictEqual(
      yield* programs[service].end("SIGKILL"),
      { code: null, signal: "SIGKILL" },
      programs[service].output()
    )
    programs[service] = yield* start(service)
  })
  const outputs = () => services.map((service) => `${service}: ${programs[service].output().slice(-2_000)}`)

  const publish = yield* BareClient.publisher(bootstrap)
  let published = 0
  const publishTen = Effect.suspend(() => {
    const values = Array.from({ length: 10 }, () => String(published++))
    return publish(topic, values)
  })
  // The first dead letter makes its topic.
  yield* publishTen
  const topics = [topic, ...retryTopics("billing", topic), `${topic}.DLT`]
  yield* Bus.until(
    "the services have made the derived topics",
    Bus.withAdmin(({ listTopics }) => listTopics).pipe(
      Effect.map((names) => topics.every((name) => names.includes(name)))
    ),
    { otherwise: outputs }
  )
  const seen = yield* BareClient.observer(bootstrap, Bus.fresh("observer"), topics)
  const kills = yield* storm(publishTen, killOne)

  for (const service of services) {
    for (const name of [topic, ...retryTopics(service, topic)]) {
      yield* Bus.lagIsZero(groupOf(service, topic), name, "120 seconds")
    }
  }
  const ends = yield* Effect.forEach(topics, Bus.logEnds)
  const stored = ends.flatMap((each) => [...each.values()]).reduce((sum, end) => sum + Number(end), 0)
  yield* Bus.until("the observer has seen all", () => seen.length >= stored, {
    otherwise: () => [seen.length, stored]
  })
  return { published, kills, calls: Array.from(calls()), callsSoFar: calls, seen, killOne, programs }
})

type Outcome = Effect.Success<ReturnType<typeof run>>

const sorted = (values: Iterable<number>) => Array.from(new Set(values)).sort((a, b) => a - b)
const numbersWhere = (published: number, isSo: (n: number) => boolean) =>
  Array.from({ length: published }, (_, n) => n).filter(isSo)

/** Each service had each record in exactly the tiers that its own policy leads to, and handled it in the last of them or not at all. */
const assertCalls = ({ published, calls }: Outcome) => {
  for (const service of services) {
    const own = calls.filter((call) => call.service === service)
    for (const tier of [0, 1, 2, 3]) {
      const inTier = own.filter((call) => call.tier === tier)
      assert.deepStrictEqual(
        sorted(inTier.map(({ n }) => n)),
        numbersWhere(published, (n) => fateOf(service, n).deliveries > tier),
        `${service} is called in tier ${tier}`
      )
      assert.deepStrictEqual(
        sorted(inTier.flatMap(({ n, handled }) => (handled ? [n] : []))),
        numbersWhere(published, (n) => {
          const { deliveries, deadLetter } = fateOf(service, n)
          return deadLetter === undefined && deliveries === tier + 1
        }),
        `${service} handles in tier ${tier}`
      )
    }
  }
}

/** Copies that were made by one service, as the class of its failure tells, and were given to the handler of the other one. */
const foreignCopiesHandled = ({ calls }: Outcome) =>
  calls.filter(
    ({ service, tier, failedFirstWith }) => tier > 0 && !failureClasses[service].includes(failedFirstWith ?? "")
  )

/** Copies of a service in a topic: none is missing, none is there for another reason, and those beyond the first come from deliveries that a death cut off. */
const assertCopies = ({ published, kills, seen }: Outcome, topic: string) => {
  const copies = seen.filter((record) => record.topic !== topic)
  const firstClass = (record: BareClient.Seen) =>
    record.header("x-eventbus-tier0-exception") ?? record.header("x-eventbus-last-exception-class") ?? ""
  const counts: Record<string, number> = {}
  for (const service of services) {
    const names = [...retryTopics(service, topic), `${topic}.DLT`]
    for (const [index, name] of names.entries()) {
      const own = copies.filter(
        (record) => record.topic === name && failureClasses[service].includes(firstClass(record))
      )
      const isLetters = name.endsWith(".DLT")
      const expected = numbersWhere(published, (n) => {
        const { deliveries, deadLetter } = fateOf(service, n)
        return isLetters ? deadLetter !== undefined : deliveries > index + 1
      })
      assert.deepStrictEqual(sorted(own.map(({ value }) => Number(value))), expected, `${service} in ${name}`)
      for (const record of own) {
        assert.strictEqual(record.header("x-eventbus-copy-owner"), `${name}/${groupOf(service, topic)}`)
      }
      // Each death cuts off at most one record of each partition of each topic that leads here.
      assert.isAtMost(own.length - expected.length, kills[service] * partitions * (index + 1), `${service} in ${name}`)
      counts[`${service} in ${name.slice(topic.length + 1)}`] = own.length
      if (!isLetters) continue
      for (const record of own) {
        const { deliveries, deadLetter } = fateOf(service, Number(record.value))
        assert.strictEqual(record.header("x-eventbus-dlt-reason"), deadLetter)
        assert.strictEqual(record.header("x-eventbus-total-attempts"), String(deliveries))
        assert.include(failureClasses[service], record.header("x-eventbus-last-exception-class"))
      }
    }
  }
  // Nothing else is in any of these topics.
  assert.strictEqual(
    Object.values(counts).reduce((sum, count) => sum + count, 0),
    copies.length
  )
  assert.strictEqual(seen.length - copies.length, published)
  return counts
}

/** Both services count their own dead letters, and the other's by its group; and the commands on them. */
const deadLettersOf = Effect.fnUntraced(function* (
  service: Service,
  topic: string,
  counts: Readonly<Record<string, number>>
) {
  const other = service === "billing" ? "shipping" : "billing"
  const app = yield* Bus.start(binding(service, topic, () => {}, false))
  const commands = yield* app.connector.deadLetters(service)
  const own = counts[`${service} in DLT`] ?? 0
  const foreign = new Map([[groupOf(other, topic), counts[`${other} in DLT`] ?? 0]])
  assert.deepInclude(yield* commands.stats, { count: own, stored: own, foreign })
  return { commands, own, foreign }
})

/** Both services replay all of their dead letters at once, while a process of each is killed. Each gets its own back, and none of the other's. */
const assertReplays = Effect.fnUntraced(function* (
  { published, callsSoFar, killOne, programs }: Outcome,
  topic: string,
  counts: Readonly<Record<string, number>>
) {
  const replay = Effect.fnUntraced(function* (service: Service) {
    const { commands, own, foreign } = yield* deadLettersOf(service, topic, counts)
    assert.deepStrictEqual(yield* commands.replay(Number.POSITIVE_INFINITY), {
      ...{ replayed: own, passedOver: 0, refused: 0, foreign, unreadable: 0 }
    })
    assert.deepInclude(yield* commands.stats, { count: 0, stored: own })
  })
  yield* Effect.all([Effect.forEach(services, replay, { concurrency: 2 }), Effect.forEach(services, killOne)], {
    concurrency: 2
  })
  const replayed = (service: Service) =>
    sorted(callsSoFar().flatMap((call) => (call.replayed && call.service === service ? [call.n] : [])))
  const expected = (service: Service) => numbersWhere(published, (n) => fateOf(service, n).deadLetter !== undefined)
  yield* Bus.until("the services have handled their replays", () =>
    services.every((service) => replayed(service).length >= expected(service).length)
  )
  for (const service of services) {
    yield* Bus.lagIsZero(groupOf(service, topic), topic)
    assert.deepStrictEqual(replayed(service), expected(service), `${service} gets its own replays`)
    assert.strictEqual((yield* programs[service].end("SIGTERM")).signal, null, programs[service].output())
  }
})

KafkaSuite.shared("two services on one topic", (bootstrap) => {
  Bus.story(
    bootstrap,
    "C34 ruling 70 ruling 71 default names, two processes, kill -9: each handles each record by its own policy, and no copy and no replay of the other",
    () =>
      Effect.gen(function* () {
        const topic = Bus.fresh("orders")
        yield* Bus.createTopic(topic, partitions)
        const outcome = yield* run(bootstrap, topic)
        const { published, kills, calls } = outcome
        assert.deepStrictEqual(foreignCopiesHandled(outcome), [])
        assertCalls(outcome)
        const counts = assertCopies(outcome, topic)
        yield* assertReplays(outcome, topic, counts)
        const repeated = calls.length - new Set(calls.map(({ service, n, tier }) => `${service}/${n}/${tier}`)).size
        console.log(
          `two services: ${published} records in ${seconds} s, kill -9 ${kills.billing} times billing and ${kills.shipping} times shipping; ${calls.length} calls, ` +
            `${repeated} of them repeated; 0 foreign copies handled; copies: ${JSON.stringify(counts)}`
        )
      }),
    240_000 + 2_000 * seconds
  )
})
