/** A rollback hook runs, or is refused: it is never accepted and then forgotten. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as NodeSqlite from "../src/drivers/NodeSqlite.ts"
import * as TxContext from "../src/TxContext.ts"

const database = TxContext.layer.pipe(Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))))

type Hooked = Effect.Effect<unknown, unknown, SqlClient.SqlClient>
type Open = (self: Hooked) => Hooked

const own: Open = TxContext.withTransaction
const plain: Open = (self) => SqlClient.SqlClient.use((sql) => sql.withTransaction(self))
const thenFails: Open = (self) => Effect.andThen(self, Effect.fail("no"))
const caught: Open = (self) => Effect.exit(self)

/** Registers a hook inside of these, the outermost first. Returns whether it was accepted, and whether it ran. */
const outcome = Effect.fnUntraced(function* (...around: ReadonlyArray<Open>) {
  const tx = yield* TxContext.TxContext
  const seen: Array<string> = []
  const hook = tx.afterRollback(Effect.sync(() => void seen.push("ran"))).pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.sync(() => void seen.push("accepted")),
      onFailure: ({ _tag }) => Effect.sync(() => void seen.push(_tag))
    })
  )
  yield* Effect.exit(around.reduceRight<Hooked>((self, open) => open(self), hook))
  return seen
})

describe("a rollback hook", () => {
  it.effect("OUT-W-13: runs after the rollback of its transaction or savepoint, and not after a commit", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* outcome(own, thenFails), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own), ["accepted"])
      assert.deepStrictEqual(yield* outcome(own, caught, own, thenFails), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own, thenFails, own), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own, own, own), ["accepted"])
    }).pipe(Effect.provide(database))
  )

  it.effect("OUT-W-13: runs after the rollback of a plain savepoint, though its transaction commits", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* outcome(own, caught, plain, thenFails), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own, caught, plain, thenFails, own), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own, own, caught, plain, thenFails, own), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own, thenFails, caught, plain, thenFails), ["accepted", "ran"])
      assert.deepStrictEqual(yield* outcome(own, plain), ["accepted"])
      assert.deepStrictEqual(yield* outcome(own, plain, own), ["accepted"])
    }).pipe(Effect.provide(database))
  )

  it.effect("OUT-W-13: is refused where `sql.withTransaction` opened the transaction, whatever is between", () =>
    Effect.gen(function* () {
      const refused = ["RollbackHookUnsupported"]
      assert.deepStrictEqual(yield* outcome(plain, thenFails), refused)
      assert.deepStrictEqual(yield* outcome(plain, thenFails, own), refused)
      assert.deepStrictEqual(yield* outcome(plain, own, own, thenFails), refused)
      assert.deepStrictEqual(yield* outcome(plain, thenFails, own, plain, own), refused)
    }).pipe(Effect.provide(database))
  )

  it.effect("OUT-W-13: is refused in a transaction of another client, and once its transaction has ended", () =>
    Effect.gen(function* () {
      const other = yield* Layer.build(Layer.fresh(database))
      const inOther: Open = (self) =>
        SqlClient.SqlClient.use((sql) =>
          Effect.provideContext(TxContext.withTransaction(Effect.provideService(self, SqlClient.SqlClient, sql)), other)
        )
      assert.deepStrictEqual(yield* outcome(inOther, plain, thenFails), ["RollbackHookUnsupported"])
      const tx = yield* TxContext.TxContext
      const late = Effect.andThen(Effect.yieldNow, Effect.exit(tx.afterRollback(Effect.void)))
      const fiber = yield* TxContext.withTransaction(Effect.forkDetach(late))
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "Failure")
    }).pipe(Effect.scoped, Effect.provide(database))
  )
})
