/** A program with a key that is held: what the tests of the API, the command line and the console start from. */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
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

/** The program, what it has handled, and the values whose handler fails. */
export type WithHeldKey = Effect.Success<Started> & {
  readonly handled: ReadonlyArray<string>
  readonly failing: Set<string>
}

/** Key `customer-a` is held by a1 while it is in `failing`, and a2 waits behind it. */
export const held: (
  options?: Parameters<typeof start>[0]
) => Effect.Effect<WithHeldKey, Effect.Error<Started>, Scope.Scope> = Effect.fnUntraced(function* (options = {}) {
  const handled: Array<string> = []
  const failing = new Set(["a1"])
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", key: Serde.string, value: Serde.string },
    ...{ orderingMode: "PER_KEY", perKey: { onDeadLetter: "hold" } },
    retry: RetryPolicy.tiered({ tiers: [{ delay: "50 millis", maxAttempts: 1 }], blocking: { maxAttempts: 1 } }),
    onError: { Closed: Route.nextTier },
    handler: ({ value }) =>
      failing.has(value) ? Effect.fail(new Closed()) : Effect.sync(() => void handled.push(value))
  })
  const program = yield* start({ bindings: [orders], ...options })
  const bytes = (text: string) => new TextEncoder().encode(text)
  yield* program.memory.append(
    "orders",
    0,
    ["a1", "b1", "a2"].map((value) => ({ key: bytes(`customer-${value.slice(0, 1)}`), value: bytes(value) }))
  )
  const parked = yield* Effect.orDie(program.connector.parked("orders"))
  yield* eventually(Effect.orDie(parked.list), (keys) => keys.some(({ state }) => state === "held"))
  return { ...program, handled, failing }
})
