/** Programs with a key that is held, and with one that is stranded: what the tests of the API, the command line and the console start from. */
import { Binding, type ParkedKeys, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Schema, type Scope } from "effect"
import { eventually, start } from "./api.ts"

/** A text that only callers who may see payloads get. */
export const canary = "canary-4111"

class Closed extends Schema.TaggedError<Closed>()("Closed", {}) {
  override get message(): string {
    return `no account ${canary}`
  }
}

type Started = ReturnType<typeof start>

type Starting = (
  options?: Parameters<typeof start>[0]
) => Effect.Effect<WithParkedKey, Effect.Error<Started>, Scope.Scope>

/** The program, what it has handled, and the values whose handler fails. */
export type WithParkedKey = Effect.Success<Started> & {
  readonly handled: ReadonlyArray<string>
  readonly failing: Set<string>
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const ordersOf = (handled: Array<string>, failing: ReadonlySet<string>) =>
  Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", key: Serde.string, value: Serde.string },
    ...{ orderingMode: "PER_KEY", perKey: { onDeadLetter: "hold" } },
    retry: RetryPolicy.tiered({ tiers: [{ delay: "50 millis", maxAttempts: 1 }], blocking: { maxAttempts: 1 } }),
    onError: { Closed: Route.nextTier },
    handler: ({ value }) =>
      failing.has(value) ? Effect.fail(new Closed()) : Effect.sync(() => void handled.push(value))
  })

/** Starts the program, and waits until a key is parked in this state. */
const parkedAs = Effect.fnUntraced(function* (
  state: ParkedKeys.State,
  failing: Set<string>,
  options: NonNullable<Parameters<typeof start>[0]>,
  records: ReadonlyArray<string>
) {
  const handled: Array<string> = []
  const program = yield* start({ bindings: [ordersOf(handled, failing)], ...options })
  yield* program.memory.append(
    "orders",
    0,
    records.map((value) => ({ key: bytes(`customer-${value.slice(0, 1)}`), value: bytes(value) }))
  )
  const parked = yield* Effect.orDie(program.connector.parked("orders"))
  yield* eventually(Effect.orDie(parked.list), (keys) => keys.some((key) => key.state === state))
  return { ...program, handled, failing }
})

/** Key `customer-a` is held by a1 while it is in `failing`, and a2 waits behind it. */
export const held: Starting = (options = {}) => parkedAs("held", new Set(["a1"]), options, ["a1", "b1", "a2"])

/** The lock of key `customer-a` tells of another topic that had this name, and c1 waits until its loss is accepted. */
export const stranded: Starting = Effect.fnUntraced(function* (options = {}) {
  const former = yield* held()
  yield* former.close
  const { memory } = former
  const tier = "orders.retry-1"
  const log = yield* memory.log(tier, 0)
  const locks = log.filter(({ headers }) => headers.some(({ key }) => key === bond))
  yield* memory.append(
    tier,
    0,
    locks.map(({ key, value, headers }) => ({
      ...{ key, value },
      headers: headers.map((header) =>
        header.key === bond ? { ...header, value: bytes("another//orders/0/billing") } : header
      )
    }))
  )
  yield* memory.setCommitted("billing", tier, 0, BigInt(log.length))
  return yield* parkedAs("stranded", new Set(), { ...options, memory }, ["c1"])
})

const bond = "x-eventbus-order-bond"
