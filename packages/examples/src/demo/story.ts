/**
 * The plot of the demo: orders are placed in SQL transactions; a first instance handles them, a second one joins, the bank goes down and comes
 * back, a deployment comes in the middle of the work, and the end.
 */
import { Binding, EventBusConnector } from "@eventbus/core"
import { Effect, Exit, Fiber, Layer, Schedule, Scope } from "effect"
import { type Arrival, Checkout } from "./checkout.ts"
import { Cluster, partitions } from "./cluster.ts"
import { inOutbox, type Progress, waiting } from "./progress.ts"
import { arrival, binding, Payments } from "./shop.ts"

const backlog = 150
const flowing = 500
const flowInterval = "33 millis"
const slowOnes = 2 * partitions

/** How many orders one partition gets when keys spread evenly. */
export const plannedPerPartition = Math.ceil((backlog + flowing + slowOnes) / partitions)

/** Starts with the first order and ends when all instances have stopped. Interrupting it stops them gracefully too. */
export const tell = (progress: Progress) =>
  Effect.gen(function* () {
    const checkout = yield* Checkout
    const counts = progress.counts
    const place = Effect.fnUntraced(function* (order: Arrival) {
      yield* checkout.place(order)
      counts.placed++
      // Some customers change their mind before the COMMIT.
      if (counts.placed % 20 > 0) return
      yield* checkout.abandon({ ...order, id: `${order.id}-again` })
      counts.rolledBack++
    })
    /** One order for each partition that takes its bank 2.5 seconds. */
    const placeSlow = (first: number) =>
      Effect.forEach(Array(partitions).keys(), (partition) => {
        const order = arrival(first + partition, "slow")
        return Effect.as(place({ ...order, customer: checkout.customerOf(partition) ?? order.customer }), order.id)
      })

    yield* Effect.forEach(Array(backlog).keys(), (index) => place(arrival(index)), { concurrency: "unbounded" })
    progress.announce(`${backlog} orders are committed, each with its event in one transaction`)
    yield* until(() => inOutbox(progress) === 0)
    progress.announce("the outbox has published them; app-1 starts")
    const first = yield* startInstance(progress, "app-1")
    const flow = yield* Effect.forEach(
      Array(flowing).keys(),
      (index) => Effect.delay(place(arrival(backlog + index)), flowInterval),
      { discard: true }
    ).pipe(Effect.forkScoped) // Of the story's scope: after Ctrl-C nothing is placed any more when the account is taken.
    yield* until(() => owned(progress, "app-1") === partitions)
    yield* Effect.sleep("3500 millis")

    progress.announce("app-2 starts: the group moves partitions to it")
    const second = yield* startInstance(progress, "app-2")
    yield* until(() => owned(progress, "app-2") === partitions / 2)
    yield* Effect.sleep("3 seconds")

    yield* outage(progress)

    const slow = yield* placeSlow(backlog + flowing)
    yield* until(() => slow.some((order) => inHandOf(progress, order) === "app-2"))
    progress.announce("app-2 gets SIGTERM in the middle of slow orders: it finishes them")
    yield* second.stop
    progress.announce("app-2 has committed and left; app-1 takes its partitions")
    yield* Fiber.join(flow)
    yield* until(() => inOutbox(progress) === 0 && waiting(progress) === 0)

    const slowest = yield* placeSlow(backlog + flowing + partitions)
    yield* until(() => slowest.every((order) => inHandOf(progress, order) === "app-1"))
    progress.announce("app-1 gets SIGTERM too, with a slow order in every partition")
    yield* first.stop
    progress.announce("app-1 has committed and left")
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => progress.announce("interrupted: the instances finish what they have"))),
    Effect.scoped
  )

/** The bank is down for a while: the breakers keep the orders from being used up against it. */
const outage = Effect.fnUntraced(function* (progress: Progress) {
  const payments = yield* Payments
  const states = () => Array.from(progress.breakers.values(), ({ state }) => state)
  yield* payments.setDown(true)
  progress.announce("the bank is down: first failures go to a retry topic, then the breakers open")
  yield* until(() => states().filter((state) => state === "OPEN").length === 2)
  progress.announce("both instances are PAUSED and stay in the group; their orders wait where they are")
  yield* Effect.sleep("3 seconds")
  yield* payments.setDown(false)
  progress.announce("the bank is back: a few orders find out, then all go on")
  yield* until(() => states().every((state) => state === "CLOSED"))
  progress.announce("both breakers are closed")
})

/** One process of the application: a connector with the binding. Closing its scope is what SIGTERM does to a real one. */
const startInstance = Effect.fnUntraced(function* (progress: Progress, instance: string) {
  const { names } = yield* Cluster
  const watched = Layer.effectDiscard(
    Effect.flatMap(EventBusConnector.EventBusConnector, (connector) =>
      connector.subscribe((event) => progress.observe(instance, event))
    )
  ).pipe(Layer.provideMerge(EventBusConnector.layer))
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  yield* Layer.buildWithScope(Binding.layer(binding(names)).pipe(Layer.provideMerge(watched)), scope)
  return { stop: Scope.close(scope, Exit.void) }
})

const owned = (progress: Progress, instance: string): number =>
  progress.partitions.filter(({ owner }) => owner === instance).length

/** The instance whose handler works on the order now. */
const inHandOf = (progress: Progress, id: string): string | undefined => {
  const position = progress.positions.get(id)
  const partition = position && progress.partitions[position.partition]
  return partition?.inHand?.offset === position?.offset ? partition?.owner : undefined
}

/** Waits for the picture to show it, for 30 seconds at most: what is missing then, the account tells. */
const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds) => holds, schedule: Schedule.spaced("50 millis") }),
    Effect.timeoutOption("30 seconds"),
    Effect.asVoid
  )
