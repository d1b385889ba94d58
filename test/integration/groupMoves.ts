/** A service of several pods in one group whose pods are replaced, one by one and under load, by those of another client; and the ledger of what they handle. */
import { assert } from "@effect/vitest"
import { Binding, type Broker, Plan, RetryPolicy, Route, Serde } from "@eventbus/core"
import { JavaClient } from "@eventbus/kafka-runner"
import { Data, Effect, Fiber, Random, type Scope } from "effect"
import * as BareClient from "../../packages/kafkajs/test/bareClient.ts"
import * as Bus from "./bus.ts"

/** How long the load goes on after each replacement. `MOVE_SECONDS` asks for the long version: three pods, 2,000 records a second, and the clients' own heartbeat intervals. */
const seconds = Number(process.env["MOVE_SECONDS"] ?? 0)
export const isLong = seconds > 0
const [stayMillis, perSecond, pods] = isLong ? [seconds * 1_000, 2_000, 3] : [300, 500, 2]
const partitions = 6

/** A record that a pod has handled. */
interface Handled {
  readonly n: number
  readonly partition: number
  readonly atMillis: number
  readonly client: "old" | "connector"
  readonly tier: number
}

export interface Pod {
  readonly isReady: () => boolean
  readonly leave: Effect.Effect<void>
}

/** The client that the service had before. */
export interface OldClient {
  /** The protocol to list in step 1. */
  readonly protocol: Broker.AssignmentStrategy
  readonly pod: (service: Service) => Effect.Effect<Pod, unknown, Scope.Scope>
  /** The most records that were in flight in its pods whenever one had to give up partitions. */
  readonly inFlight: () => number
}

export interface Service {
  readonly bootstrap: ReadonlyArray<string>
  readonly name: string
  readonly handled: Array<Handled>
  /** Whether what the handlers depend on is down for some records. */
  failing: boolean
}

/** kafkajs's default is 3 seconds, Java's too. */
const heartbeatMillis = isLong ? 3_000 : 300

export const kafkaJs = (): OldClient => {
  const started: Array<{ readonly joins: () => number }> = []
  return {
    protocol: "RoundRobinAssigner",
    pod: ({ bootstrap, name, handled }) =>
      Effect.gen(function* () {
        const report = ({ value, partition }: BareClient.Seen) =>
          void handled.push({ n: Number(value), partition, atMillis: Date.now(), client: "old", tier: 0 })
        const member = yield* BareClient.join(bootstrap, name, [name], report, { heartbeatInterval: heartbeatMillis })
        started.push(member)
        return { isReady: () => member.owned().length > 0, leave: member.leave }
      }),
    inFlight: () => BareClient.commitThreshold * started.reduce((sum, { joins }) => sum + joins(), 0)
  }
}

/** The most records of one poll: those that a refused commit leaves uncommitted. */
const maxPollRecords = 100

export const java = (protocol: "range" | "cooperative-sticky", assignor: string): OldClient => {
  const started: Array<JavaClient.GroupMember> = []
  return {
    protocol,
    pod: ({ bootstrap, name, handled }) =>
      Effect.gen(function* () {
        const member = yield* JavaClient.join(bootstrap, [name], name, {
          "partition.assignment.strategy": `org.apache.kafka.clients.consumer.${assignor}`,
          "heartbeat.interval.ms": String(heartbeatMillis),
          "max.poll.records": String(maxPollRecords)
        })
        started.push(member)
        let copied = 0
        const copy = () => {
          for (const { value, partition, atMillis } of member.handled().slice(copied)) {
            handled.push({ n: Number(value), partition, atMillis, client: "old", tier: 0 })
            copied++
          }
        }
        yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.sync(copy), "50 millis")))
        return {
          isReady: () => (member.owned()?.length ?? 0) > 0,
          leave: Effect.andThen(member.leave, Effect.sync(copy))
        }
      }),
    inFlight: () => maxPollRecords * started.reduce((sum, { refusedCommits }) => sum + refusedCommits(), 0)
  }
}

class Down extends Data.TaggedError("Down") {}

const own = "eventbus-cooperative-sticky"

/** One record in 40 needs a retry topic, and one in 80 the second, too. */
const failsIn = (n: number, tier: number): boolean => (tier === 0 && n % 40 === 7) || (tier === 1 && n % 80 === 7)

/** The binding of the service in a step. */
const bindingOf = (service: Service, old: OldClient, step: 1 | 2) =>
  Binding.make(service.name, {
    ...{ topic: service.name, groupId: service.name, value: Serde.string },
    ...(step === 1 && { partitionAssignmentStrategy: [own, old.protocol] as const }),
    ...{ ackMode: "MANUAL" as const, heartbeatInterval: isLong ? "3 seconds" : "300 millis" },
    retry: RetryPolicy.tiered({
      ...{ blocking: { maxAttempts: 1 }, consumer: "separate" },
      tiers: ["300 millis", "600 millis"].map((delay) => ({ delay: delay as "300 millis", maxAttempts: 1 }))
    }),
    handler: ({ value, record: { partition }, tier }) => {
      if (service.failing && failsIn(Number(value), tier)) return Effect.fail(new Down())
      return Effect.sync(
        () =>
          void service.handled.push({ n: Number(value), partition, atMillis: Date.now(), client: "connector", tier })
      )
    },
    onError: { Down: Route.retry }
  })

const connectorPod = (service: Service, old: OldClient, step: 1 | 2) =>
  Effect.map(Bus.start(bindingOf(service, old, step)), (app): Pod & { readonly app: Bus.App } => ({
    app,
    isReady: () => app.of("PartitionAssigned").some(({ topic }) => topic === service.name),
    leave: app.close
  }))

/** The findings of `plan --check` about the group, as text. */
const planned = (service: Service, old: OldClient, step: 1 | 2) =>
  Effect.map(Plan.check(Plan.make(bindingOf(service, old, step))), (all) =>
    all.filter(({ code }) => code === "group-protocol" || code === "records-waiting").map(({ message }) => message)
  )

/** A part of the move, or a time of the old client alone, and the longest time that a partition stood still in it. */
export interface Phase {
  readonly name: string
  readonly longestGapMillis: number
  readonly isOldAlone: boolean
}

/** From one record to the next one of the same partition, as the main topic was read between these times. */
const longestGap = (handled: ReadonlyArray<Handled>, fromMillis: number, toMillis: number): number => {
  const inTime = handled.filter(({ atMillis, tier }) => tier === 0 && atMillis >= fromMillis && atMillis <= toMillis)
  const gaps = Array.from(Map.groupBy(inTime, ({ partition }) => partition).values(), (of) => {
    const times = of.map(({ atMillis }) => atMillis).sort((a, b) => a - b)
    return times.slice(1).reduce((longest, at, index) => Math.max(longest, at - times[index]!), 0)
  })
  return Math.max(...gaps)
}

/** Publishes until it is interrupted, and counts. */
const load = Effect.fnUntraced(function* ({ bootstrap, name }: Service) {
  const publish = yield* BareClient.publisher(bootstrap)
  const counter = { published: 0, open: true }
  const begin = Date.now()
  const tick = Effect.gen(function* () {
    const due = Math.floor(((Date.now() - begin) / 1_000) * perSecond)
    const values = Array.from({ length: due - counter.published }, (_, index) => String(counter.published + index))
    if (values.length > 0) yield* publish(name, values)
    counter.published += values.length
    yield* Effect.sleep("50 millis")
  })
  const running = yield* Effect.forkScoped(
    Effect.whileLoop({ while: () => counter.open, body: () => tick, step: () => {} })
  )
  const stop = Effect.suspend(() => {
    counter.open = false
    return Effect.map(Fiber.join(running), () => counter.published)
  })
  return stop
})

/** Random, so that no replacement meets the heartbeats of the others at one point of their interval. */
const stay = Effect.flatMap(Random.nextIntBetween(stayMillis, 2 * stayMillis), Effect.sleep)

/** Replaces pods, the oldest first: the new one works before the old one leaves. */
const replaceAll = Effect.fnUntraced(function* <R>(
  running: Array<Pod>,
  count: number,
  start: Effect.Effect<Pod, unknown, R>
) {
  for (let replaced = 0; replaced < count; replaced++) {
    const next = yield* Effect.orDie(start)
    yield* Bus.until("the new pod works", next.isReady)
    // A deployment waits, too. Without it the two rebalances of a replacement would be one gap for the pod that leaves.
    yield* stay
    running.push(next)
    yield* running.shift()!.leave
    yield* stay
  }
})

export interface Outcome {
  readonly published: number
  readonly phases: ReadonlyArray<Phase>
  readonly lost: ReadonlyArray<number>
  /** Records that were handled twice, by the client that had them first. */
  readonly repeated: { readonly old: number; readonly connector: number }
  readonly inFlight: number
  /** Records that were handled in a retry topic. */
  readonly inTiers: number
}

/** The whole way there and back. */
export const move = Effect.fnUntraced(function* (bootstrap: ReadonlyArray<string>, title: string, old: OldClient) {
  const service: Service = { bootstrap, name: Bus.fresh(title), handled: [], failing: true }
  const { name, handled } = service
  yield* Bus.createTopic(name, partitions)
  const running: Array<Pod> = []
  const start = Effect.orDie(old.pod(service))
  running.push(
    ...(yield* Effect.all(
      Array.from({ length: pods }, () => start),
      { concurrency: "unbounded" }
    ))
  )
  yield* Bus.until("the old pods work", () => running.every(({ isReady }) => isReady()))
  const stop = yield* load(service)
  const phases: Array<Phase> = []
  const phase = <R>(title: string, work: Effect.Effect<void, unknown, R>, isOldAlone = false) =>
    Effect.gen(function* () {
      const begin = Date.now()
      yield* Effect.orDie(work)
      yield* Effect.sleep(Math.max(stayMillis, 500))
      phases.push({ name: title, longestGapMillis: longestGap(handled, begin, Date.now()), isOldAlone })
    })
  // The move is compared with as many replacements of the old client alone, half of them before it and half behind it: the longest of more gaps is longer by chance.
  const alone = isLong ? phase("old client alone", replaceAll(running, 2 * pods, old.pod(service)), true) : Effect.void
  const connector = (step: 1 | 2) => connectorPod(service, old, step)
  const says = (step: 1 | 2, words: string) =>
    Effect.map(planned(service, old, step), (found) => assert.include(found.join("\n"), words))

  yield* alone
  yield* phase("step 1", replaceAll(running, 1, connector(1)))
  yield* says(1, "Step 1 of moving the group goes on")
  yield* phase("step 1", replaceAll(running, pods - 1, connector(1)))
  yield* says(1, "step 1 of moving the group is complete")
  yield* phase("step 2", replaceAll(running, pods, connector(2)))
  assert.deepStrictEqual(yield* planned(service, old, 2), [])
  yield* phase("back to step 1", replaceAll(running, pods, connector(1)))
  service.failing = false
  yield* phase("back to the old client", replaceAll(running, pods - 1, old.pod(service)))
  yield* Bus.until(
    "no record waits",
    Effect.map(planned(service, old, 1), (found) => found.join().includes("No record waits in a retry topic"))
  )
  yield* phase("back to the old client", replaceAll(running, 1, old.pod(service)))
  yield* alone
  const published = yield* stop
  yield* Bus.lagIsZero(name, name)
  const firsts = new Map<number, Handled["client"]>()
  const repeated = { old: 0, connector: 0 }
  const all = () => new Set(handled.map(({ n }) => n)).size
  yield* Bus.until("the ledger is complete", () => all() === published, { within: "10 seconds" }).pipe(Effect.exit)
  for (const { n, client } of [...handled].sort((a, b) => a.atMillis - b.atMillis)) {
    const first = firsts.get(n)
    if (first === undefined) firsts.set(n, client)
    else repeated[first]++
  }
  const lost = Array.from({ length: published }, (_, n) => n).filter((n) => !firsts.has(n))
  const inTiers = handled.filter(({ tier }) => tier > 0).length
  const outcome: Outcome = { published, phases, lost, repeated, inFlight: old.inFlight(), inTiers }
  return outcome
})
