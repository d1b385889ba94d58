/** A binding whose handler refuses everything until somebody has repaired it, with its dead letters, behind the admin API. */
import { Authorizer } from "@eventbus/admin"
import { Binding, Broker, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { eventually, Refused, start, startOn } from "../../packages/admin/test/api.ts"
import { served } from "./browser.ts"

export const tokens = { operator: "token-of-the-operator", viewer: "token-of-the-viewer", orders: "token-for-orders" }

export const authorizer = Authorizer.fromTokens([
  {
    token: Redacted.make(tokens.operator),
    name: "anna",
    permissions: ["view", "view-payload", "operate", "replay", "discard"]
  },
  { token: Redacted.make(tokens.viewer), name: "ben", permissions: ["view"] },
  {
    ...{ token: Redacted.make(tokens.orders), name: "cleo", permissions: ["view", "operate"] },
    bindings: ["default:orders"]
  }
])

interface Record {
  readonly key?: string
  readonly value: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
}

interface Options extends Omit<NonNullable<Parameters<typeof start>[0]>, "bindings"> {
  /** The message of the error that the handler fails with. */
  readonly message?: string
}

/** The program, and its address. */
interface Incident extends Effect.Success<ReturnType<typeof start>> {
  /** From now on the handler takes everything. */
  readonly heal: Effect.Effect<void>
  readonly address: string
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Two bindings, of which `orders` refuses everything until `heal`. `named` makes the name of a topic or a group. */
const refusing = (message: string, named: (name: string) => string = (name) => name) => {
  let isBad = true
  const failing = Effect.suspend(() => (isBad ? Effect.fail(Object.assign(new Refused(), { message })) : Effect.void))
  const orders = Binding.make("orders", {
    ...{ topic: named("orders"), groupId: named("billing"), value: Serde.string },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] }),
    onError: { Refused: Route.deadLetter("refused") },
    circuitBreaker: { slidingWindowSize: 100, minimumNumberOfCalls: 100 },
    handler: () => failing
  })
  const payments = Binding.make("payments", {
    ...{ topic: named("payments"), groupId: named("accounting"), value: Serde.string },
    handler: () => Effect.void
  })
  const heal = Effect.sync(() => {
    isBad = false
  })
  return { bindings: [Binding.rehearsable(orders, Layer.empty), payments], heal }
}

const ofGateway = "the gateway of the bank does not answer"

const areDead = ({ connector }: Pick<Incident, "connector">, letters: number) =>
  eventually(
    Effect.flatMap(connector.deadLetters("orders"), ({ stats }) => stats),
    ({ count }) => count === letters
  )

/** Each record is dead-lettered when this answers. */
export const incident = Effect.fnUntraced(function* (
  records: ReadonlyArray<Record>,
  options: Options = {}
): Effect.fn.Return<Incident, unknown, Scope.Scope> {
  const { message = ofGateway, ...routes } = options
  const { bindings, heal } = refusing(message)
  const program = yield* start({ authorizer, ...routes, bindings })
  yield* program.memory.append(
    "orders",
    0,
    records.map(({ key, value, headers = [] }) => ({
      key: key === undefined ? null : bytes(key),
      value: bytes(value),
      headers: headers.map(([name, text]) => ({ key: name, value: bytes(text) }))
    }))
  )
  yield* areDead(program, records.length)
  return { ...program, heal, address: yield* served(program.web) }
})

/** The same on a cluster whose topics exist, with these values as records. */
export const incidentOn = Effect.fnUntraced(function* (
  values: ReadonlyArray<string>,
  named: (name: string) => string,
  publish: (topic: string, values: ReadonlyArray<string>) => Effect.Effect<unknown>
) {
  const { bindings, heal } = refusing(ofGateway, named)
  const program = yield* startOn(yield* Broker.Broker, { authorizer, bindings })
  yield* publish(named("orders"), values)
  yield* areDead(program, values.length)
  return { ...program, heal, address: yield* served(program.web) }
})
