/**
 * The Event Bus Connector in a minute: `pnpm demo`. `KAFKA_BROKERS=host:port` takes a Kafka of yours, and `DATABASE_URL=postgres://…` a
 * PostgreSQL. `--console` goes on with the console, and prints its address.
 *
 * Exits with 0 when every record is accounted for, and with 1 otherwise. Ctrl-C stops gracefully and still gives the account.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Clock, Effect, Exit, Fiber, Layer, Logger, Schedule, Schema } from "effect"
import { account } from "./demo/account.ts"
import * as Checkout from "./demo/checkout.ts"
import * as Cluster from "./demo/cluster.ts"
import * as Console from "./demo/console.ts"
import * as Evidence from "./demo/evidence.ts"
import * as KeyOrder from "./demo/keyOrder.ts"
import * as Progress from "./demo/progress.ts"
import * as Screen from "./demo/screen.ts"
import { Payments } from "./demo/shop.ts"
import * as Story from "./demo/story.ts"
import { Cards } from "./demo/subscriptions.ts"
import * as View from "./demo/view.ts"

class Unaccounted extends Schema.TaggedError<Unaccounted>()("Unaccounted", { problems: Schema.Array(Schema.String) }) {
  override get message(): string {
    return `${this.problems.length} problems: this is a bug in the connector or in the demo, please report it`
  }
}

/** The screen shows everything that a log would say. */
const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.sync(() => {
    if (Cause.hasInterruptsOnly(cause)) return
    const error = Cause.squash(cause)
    Screen.print([Screen.red(`  ✘ ${error instanceof Error ? error.message : String(error)}`)])
  })

/** Only the scenario itself can be interrupted, so that Ctrl-C still prints the account and its verdict. */
const program = Effect.uninterruptibleMask((restore) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const progress = Progress.make(Cluster.partitions, () => clock.currentTimeMillisUnsafe())
    const world = Layer.mergeAll(Payments.layer, Cards.layer, Checkout.layer(progress.published)).pipe(
      Layer.provideMerge(Cluster.layer)
    )
    const context = yield* restore(Layer.build(world))
    yield* Effect.provide(tellAndAudit(progress, restore), context)
  }).pipe(Effect.scoped, Effect.tapCause(report))
)

const tellAndAudit = Effect.fnUntraced(function* (
  progress: Progress.Progress,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => typeof effect
) {
  const cluster = yield* Cluster.Cluster
  const { database } = yield* Checkout.Checkout
  const title = `${database} and ${cluster.title}`
  const drawing = yield* Effect.forkChild(Effect.interruptible(show(progress, title)))
  const ending = yield* Effect.exit(restore(Story.tell(progress)))
  yield* Fiber.interrupt(drawing)
  const inOrder = yield* Effect.exit(Effect.andThen(ending, restore(orderPerKey)))
  const result = yield* audit(progress, Exit.isSuccess(ending))
  Screen.print(View.accountLines(result, database, progress.counts.rolledBack))
  const problems = [...result.problems, ...(Exit.isSuccess(inOrder) ? inOrder.value : [])]
  if (problems.length > 0) return yield* new Unaccounted({ problems })
  return yield* Console.isWanted ? Effect.andThen(inOrder, restore(Console.run)) : inOrder
})

/** The second act, line by line below the first one. */
const orderPerKey = Effect.gen(function* () {
  Screen.print(["", View.keyOrderHeading, ""])
  const problems = yield* KeyOrder.tell((line) => Screen.print([`  ${line}`]))
  Screen.print(View.keyOrderVerdict(problems))
  return problems
})

/** Draws until it is interrupted, and once more at the end. */
const show = (progress: Progress.Progress, title: string): Effect.Effect<void> => {
  if (!Screen.isLive) return narrate(progress, title)
  const canvas = Screen.canvas()
  const draw = Effect.clockWith((clock) =>
    Effect.sync(() =>
      canvas.draw(View.picture(progress, title, Story.plannedPerPartition, clock.currentTimeMillisUnsafe()))
    )
  )
  return draw.pipe(Effect.repeat(Schedule.spaced("100 millis")), Effect.asVoid, Effect.ensuring(draw))
}

/** Plain lines for a log: the cluster, each event as it happens, and totals now and then. */
const narrate = (progress: Progress.Progress, title: string): Effect.Effect<void> => {
  let told = 0
  Screen.print([View.heading(title), ""])
  const tellNew = Effect.sync(() => {
    const fresh = progress.announcements.slice(told)
    told = progress.announcements.length
    if (fresh.length > 0) Screen.print([...fresh.map(View.announcement), `          ${View.totals(progress)}`])
  })
  return tellNew.pipe(Effect.repeat(Schedule.spaced("200 millis")), Effect.asVoid, Effect.ensuring(tellNew))
}

/** A scenario that ran to its end has no orders left over; an interrupted one may have some. */
const audit = Effect.fnUntraced(function* (progress: Progress.Progress, toTheEnd: boolean) {
  // An interruption of the program does not reach this fiber, so that Ctrl-C has its account, too.
  const gathering = yield* Effect.forkDetach(Effect.interruptible(Effect.timeout(Evidence.gather, "60 seconds")))
  const cutOff = new Set(progress.partitions.flatMap(({ cutOffBy }, index) => (cutOffBy === undefined ? [] : [index])))
  const result = account(yield* Fiber.join(gathering), cutOff)
  if (!toTheEnd || result.waiting === 0) return result
  return { ...result, problems: [...result.problems, `${result.waiting} orders were not handled in time`] }
})

program.pipe(Effect.provide(Logger.layer([])), NodeRuntime.runMain({ disableErrorReporting: true }))
