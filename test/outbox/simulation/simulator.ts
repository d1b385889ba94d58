/**
 * One run of an outbox in a world that goes wrong: several nodes on one SQLite database and virtual time, with crashes between any
 * two statements, lost answers, nodes cut off from the database while their listeners go on, clocks an hour off, slow and failing
 * listeners. Everything follows from the seed.
 */
import { EventEnvelope, EventRetryPolicy, ListenerRegistry, Outbox, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { VirtualClock } from "@eventbus/testkit"
import { Clock, Effect, Exit, Layer, Logger, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { skewed } from "../skewedClock.ts"
import type { Delivery, History, Row } from "./checkers.ts"
import { type FaultRates, faultyClient, type NodeState } from "./faultyClient.ts"
import { makeRandom, type Random } from "./random.ts"

export interface World {
  readonly seed: number
  readonly shape: "multi" | "ordered"
  /** `none`: only listeners fail. */
  readonly faults: "none" | "all"
  /** A bug to plant: rewrites the statements of every node. */
  readonly plant?: (statement: string) => string
  readonly afterFailure?: "hold" | "passOver"
}

const stormMillis = 15_000
const quietMillis = 300_000
const aggregates = 4

const stormRates: FaultRates = { crash: 0.004, fail: 0.02, loseAnswer: 0.01 }
const calm: FaultRates = { crash: 0, fail: 0, loseAnswer: 0 }

class Run {
  readonly deliveries: Array<Delivery> = []
  readonly faults: Array<string> = []
  readonly transitions: Array<{ readonly eventId: string; readonly from: number; readonly to: number }> = []
  readonly deadAt = new Map<string, number>()
  readonly nodes: Array<NodeState> = []
  readonly random: Random
  readonly world: World
  /** The world's own clock, which no node sees as it is. */
  readonly clock: Clock.Clock
  rates: FaultRates
  #known = new Map<string, number>()

  constructor(world: World, clock: Clock.Clock) {
    this.world = world
    this.clock = clock
    this.random = makeRandom(world.seed)
    this.rates = world.faults === "all" ? stormRates : calm
  }

  /** A listener of one node: slow now and then, failing now and then, silent once its node is dead. */
  listener(node: NodeState): ListenerRegistry.EventListener {
    return (event) =>
      Effect.gen({ self: this }, function* () {
        const delivery: Delivery = {
          eventId: event.eventId,
          aggregate: event.aggregateId ?? "",
          startedAt: this.clock.currentTimeMillisUnsafe(),
          endedAt: undefined,
          outcome: "running"
        }
        if (node.dead) return yield* Effect.never
        this.deliveries.push(delivery)
        yield* Effect.sleep(this.random.chance(0.05) ? this.random.below(4000) : this.random.below(20))
        delivery.endedAt = this.clock.currentTimeMillisUnsafe()
        if (node.dead) {
          delivery.outcome = "died"
          return yield* Effect.never
        }
        const stubborn = event.eventType === "poison"
        delivery.outcome = stubborn || this.random.chance(0.1) ? "failed" : "ok"
        if (delivery.outcome === "failed") return yield* Effect.fail("listener failed")
      })
  }

  layer(node: NodeState, sql: SqlClient.SqlClient, clock: Clock.Clock) {
    const client = faultyClient(
      sql,
      node,
      this.random,
      () => this.rates,
      (what) => void this.faults.push(`${node.name}: ${what}`),
      this.world.plant
    )
    const settings = {
      maxAttempts: 4,
      retryPolicy: EventRetryPolicy.fixed("700 millis"),
      drainTimeout: "1 second"
    } as const
    const shape =
      this.world.shape === "multi"
        ? Outbox.multiNode({
            ...settings,
            claimLocking: { owner: node.name, lockTimeout: "6 seconds" },
            interval: "1 second"
          })
        : Outbox.orderedNodes({
            ...settings,
            ...(this.world.afterFailure === undefined ? {} : { afterFailure: this.world.afterFailure }),
            leases: { owner: node.name, lease: "6 seconds" },
            interval: "1 second"
          })
    const off = this.world.faults === "all" ? (this.random.below(3) - 1) * 3_600_000 : 0
    return shape.pipe(
      Layer.provide(ListenerRegistry.layerAll(this.listener(node))),
      Layer.provide(Layer.succeed(SqlClient.SqlClient, client)),
      Layer.provide(
        Layer.succeed(
          Clock.Clock,
          skewed(clock, () => off)
        )
      ),
      Layer.fresh
    )
  }

  /** Looks at the table: which states changed since the last look. */
  readonly observe = Effect.gen({ self: this as Run }, function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql.unsafe<Row & { readonly ended: number | null }>(
      `SELECT event_id AS "eventId", aggregate_id AS aggregate, seq, status, attempts, done_at / 1000 AS ended
       FROM outbox_event ORDER BY seq`
    )
    for (const { eventId, status, ended } of rows) {
      const from = this.#known.get(eventId)
      if (from !== undefined && from !== status) this.transitions.push({ eventId, from, to: status })
      if (status === 3 && !this.deadAt.has(eventId)) this.deadAt.set(eventId, ended ?? 0)
      this.#known.set(eventId, status)
    }
    return rows
  })
}

/** Keeps a node running under this name: when it has died, a new one takes its place a little later. */
const keepNode = Effect.fnUntraced(function* (run: Run, name: string, until: number) {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  for (let life = 0; clock.currentTimeMillisUnsafe() < until; life++) {
    const node: NodeState = { name: `${name}${life}`, dead: false, cutOff: false }
    run.nodes.push(node)
    const alive = () => !node.dead && clock.currentTimeMillisUnsafe() < until
    yield* Effect.acquireUseRelease(
      Scope.make(),
      (scope) =>
        Effect.gen(function* () {
          const built = yield* Effect.exit(Layer.buildWithScope(run.layer(node, sql, clock), scope))
          if (Exit.isSuccess(built)) yield* Effect.sleep("300 millis").pipe(Effect.repeat({ while: alive }))
        }),
      (scope) => {
        // A process that is killed runs no finalizers: those of this one cannot reach the database any more.
        node.dead = true
        return Scope.close(scope, Exit.void)
      }
    )
    yield* Effect.sleep(200 + run.random.below(2000))
  }
})

/** Now and then a node loses sight of the database for longer than its leases. */
const cutOffs = (run: Run) =>
  Effect.gen(function* () {
    yield* Effect.sleep(1000 + run.random.below(6000))
    const node = run.nodes.at(-1 - run.random.below(2))
    if (node === undefined || node.dead) return
    node.cutOff = true
    run.faults.push(`${node.name}: cut off`)
    yield* Effect.sleep(1000 + run.random.below(12_000))
    node.cutOff = false
  })

const writer = Effect.fnUntraced(function* (run: Run) {
  const store = yield* OutboxStore.OutboxStore
  const sql = yield* SqlClient.SqlClient
  for (let n = 0; n < 30; n++) {
    const aggregateId = `a${run.random.below(aggregates)}`
    const eventType = run.random.chance(0.03) ? "poison" : "event"
    const make = (part: string) =>
      EventEnvelope.make({
        eventType,
        eventId: `${aggregateId}/${n}${part}`,
        aggregateType: "x",
        aggregateId,
        payload: n
      })
    const insert = Effect.flatMap(Effect.all([make("a"), make("b")]), (events) => store.insertNew(events))
    const rolledBack = run.random.chance(0.1)
    yield* Effect.exit(sql.withTransaction(rolledBack ? Effect.andThen(insert, Effect.fail("rolled back")) : insert))
    yield* Effect.sleep(run.random.below(700))
  }
})

/** Runs the world to its end and tells what happened. */
export const simulate = (world: World): Effect.Effect<History> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const run = new Run(world, clock)
    yield* OutboxSchema.migrate()
    const end = clock.currentTimeMillisUnsafe() + stormMillis + quietMillis
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(run.observe, Effect.sleep("200 millis"))))
    for (const name of ["A", "B"]) yield* Effect.forkScoped(keepNode(run, name, end))
    if (world.faults === "all") yield* Effect.forkScoped(Effect.forever(cutOffs(run)))
    yield* Effect.forkScoped(writer(run))
    yield* Effect.sleep(stormMillis)
    run.rates = calm
    const finished = Effect.map(
      run.observe,
      (rows) => rows.length > 0 && rows.every((r) => r.status === 1 || r.status === 3)
    )
    yield* Effect.andThen(Effect.sleep("1 second"), finished).pipe(
      Effect.repeat({ until: (done) => done, times: quietMillis / 1000 - 20 })
    )
    const { deliveries, faults, transitions, deadAt } = run
    const running = () => deliveries.some((d) => d.outcome === "running")
    yield* Effect.sleep("100 millis").pipe(Effect.repeat({ while: running, times: 100 }))
    return { deliveries, faults, transitions, deadAt, rows: yield* run.observe }
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.provideMerge(
        Layer.provideMerge(
          Layer.provideMerge(OutboxStore.layer(), NodeSqlite.layer({ filename: ":memory:" })),
          Logger.layer([])
        ),
        VirtualClock.layer
      )
    ),
    Effect.orDie
  )
