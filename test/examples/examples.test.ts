import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "./program.ts"

/** Exit code of Effect's runMain after a signal. */
const interrupted = 130

/** Starting a process takes its time on a busy machine. */
const timeout = 90_000

/** Runs a service until it has written all of these, in whatever order, and stops it with SIGTERM. */
const runUntil = Effect.fnUntraced(function* (file: string, ...awaited: ReadonlyArray<string>) {
  const program = yield* start(file)
  for (const text of awaited) yield* program.writes(text)
  yield* program.signal("SIGTERM")
  assert.strictEqual(yield* program.exit, interrupted)
  return program
})

describe("example programs", () => {
  it.live(
    "handler: orders are charged; an order that does not decode never reaches the handler (SER-02)",
    () =>
      Effect.gen(function* () {
        const { lines, output } = yield* runUntil("handler.ts", "charged o-3")
        assert.deepStrictEqual(lines(), ["charging o-1", "charged o-1", "charging o-3", "charged o-3"])
        assert.match(output(), /dead-lettered to orders\.DLT without an attempt .*: DecodeFailure/)
      }),
    timeout
  )

  it.live(
    "errorRoutes: orders are retried, dead-lettered or skipped, or pause the binding when they must not be lost",
    () =>
      Effect.gen(function* () {
        const { lines, output } = yield* runUntil("errorRoutes.ts", "halted its partition", "dead-lettered to")
        assert.deepStrictEqual(lines(), [
          "charged plain with call 1",
          "charged hiccup with call 3",
          "charged last with call 1"
        ])
        assert.match(output(), /dead-lettered to orders\.DLT after attempt 1 of \d+ .*: CardDeclined/)
        assert.match(output(), /skipped after attempt 1 of \d+, .*: AlreadyCharged/)
        assert.include(output(), "PAUSED (operator)")
      }),
    timeout
  )

  it.live(
    "promises: a program without Effect charges, retries and dead-letters, and ends by the signal (RCH-06)",
    () =>
      Effect.gen(function* () {
        const program = yield* start("promises.ts")
        yield* program.writes("charged slow")
        yield* program.writes("charged hiccup")
        yield* program.signal("SIGTERM")
        assert.strictEqual(yield* program.exit, null)
        assert.match(program.output(), /dead-lettered to payments\.DLT .*: CardDeclined/)
      }),
    timeout
  )

  it.live(
    "batches: one call for many records, and only the refused one is dead-lettered",
    () =>
      Effect.gen(function* () {
        const { lines, output } = yield* runUntil("batches.ts", "insert s4=7 s5=8")
        assert.deepStrictEqual(lines(), ["insert s0=4 s1=5 s2=-300 s3=6", "insert s4=7 s5=8"])
        assert.strictEqual(output().split("dead-lettered").length - 1, 1)
      }),
    timeout
  )

  it.live(
    "keyOrder: a slow customer delays no other customer, and her records keep their order",
    () =>
      Effect.gen(function* () {
        const { lines } = yield* runUntil("keyOrder.ts", "ann paid")
        assert.deepStrictEqual(lines(), ["bob ordered", "bob paid", "ann signed up", "ann ordered", "ann paid"])
      }),
    timeout
  )

  it.live(
    "lifecycle: commands change the binding's state, and an invalid command says why (LIF-07)",
    () =>
      Effect.gen(function* () {
        const program = yield* start("lifecycle.ts")
        assert.strictEqual(yield* program.exit, 0)
        assert.deepStrictEqual(program.lines(), [
          "orders is CREATED",
          "handled o-1",
          "orders is RUNNING",
          "orders is PAUSED",
          "Cannot resume binding 'orders': current state is RUNNING, resume requires PAUSED",
          "orders is STOPPED"
        ])
      }),
    timeout
  )

  it.live(
    "tenants: bindings come and go while the program runs (BND-12)",
    () =>
      Effect.gen(function* () {
        const program = yield* start("tenants.ts")
        assert.strictEqual(yield* program.exit, 0)
        assert.deepStrictEqual(program.lines(), [
          "ann got o-1",
          "bob got o-1",
          "A binding named 'ann' is registered already. Destroy it first, or choose another name.",
          "DEGRADED: Binding 'bob' on cluster 'default': paused by operator",
          "ann is RUNNING"
        ])
      }),
    timeout
  )

  it.live(
    "bridge: records consumed on one cluster arrive on the other (MUL-02)",
    () =>
      Effect.gen(function* () {
        const { lines } = yield* runUntil("bridge.ts", "o-2 arrived in the west")
        assert.deepStrictEqual(lines(), ["o-1 arrived in the west", "o-2 arrived in the west"])
      }),
    timeout
  )

  it.live(
    "events: the outcome of each record, as a stream",
    () =>
      Effect.gen(function* () {
        const program = yield* start("events.ts")
        assert.strictEqual(yield* program.exit, 0)
        assert.deepStrictEqual(program.lines(), [
          "orders-0@0: Handled after 1 attempts",
          "orders-0@1: DeadLettered after 2 attempts",
          "orders-0@2: Handled after 1 attempts"
        ])
      }),
    timeout
  )

  it.live(
    "CFG-08 configuration: the full sample of connector seed appendix runs, and its Java class names route errors as it says",
    () =>
      Effect.gen(function* () {
        const program = yield* start("configuration.ts")
        yield* program.writes("accepted o-1")
        yield* program.writes("paid o-1")
        yield* program.writes("alert: OrderRefused (NON_RETRYABLE)")
        yield* program.writes("orders.events.retry-2")
        yield* program.signal("SIGTERM")
        assert.strictEqual(yield* program.exit, interrupted)
      }),
    timeout
  )

  it.live(
    "RES-16 resilient: the consumer of appsettings.json, embedded, routes each order by its result",
    () =>
      Effect.gen(function* () {
        const program = yield* start("resilient/program.ts", {}, ["embedded"])
        yield* program.writes("charged 2000 cents")
        yield* program.writes("routed to orders.retry.1 after attempt 1 of")
        yield* program.writes("dead-lettered to orders.error after attempt 1 of")
        yield* program.signal("SIGTERM")
        assert.strictEqual(yield* program.exit, interrupted)
      }),
    timeout
  )
})
