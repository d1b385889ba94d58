/**
 * The scenario of the demo. Orders are placed in SQL transactions; a first instance handles them, a second one joins, the bank fails and recovers,
 * and a deployment replaces an instance in the middle of the work.
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

/** Expected number of orders in one partition when keys spread evenly. */
export const plannedPerPartition = Math.ceil((backlog + flowing + slowOnes) / partitions)

/** Runs from the first order until all instances have stopped. An interruption stops them gracefully, too. */
export const tell = (progress: Progress) =>
  Effect.gen(function* () {
    const checkout = yield* Checkout
    const counts = progress.counts
    const place = Effect.fnUntraced(function* (order: Arrival) {
      yield* checkout.place(order)
      counts.placed++
      // Some customers cancel before the COMMIT.
      if (counts.placed % 20 > 0) return
      yield* checkout.abandon({ ...order, id: `${order.id}-again` })
      counts.rolledBack++
    })
    /** One order for each partition that takes the bank 2.5 seconds. */
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
    ).pipe(Effect.forkScoped) // The fiber belongs to the scope of the scenario, so that after Ctrl-C no order is placed during the account.
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

/** The bank is down for a while. The breakers keep the orders from using up their attempts. */
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

/** One process of the application: a connector with the binding. Closing its scope does what SIGTERM does to a real process. */
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

/** The instance whose handler processes the order now. */
const inHandOf = (progress: Progress, id: string): string | undefined => {
  const position = progress.positions.get(id)
  const partition = position && progress.partitions[position.partition]
  return partition?.inHand?.offset === position?.offset ? partition?.owner : undefined
}

/** Waits up to 30 seconds for a condition on the screen. The account reports anything that is missing after that. */
const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (holds) => holds, schedule: Schedule.spaced("50 millis") }),
    Effect.timeoutOption("30 seconds"),
    Effect.asVoid
  )
