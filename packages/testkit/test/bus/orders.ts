/** A binding on `orders`, and what its tests share. */
import { Binding, type BindingOptions, RetryPolicy, Route, Serde } from "@eventbus/core"
import { TestBus, TestHandler } from "@eventbus/testkit"
import { Effect, Schema } from "effect"

export class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", { status: Schema.Int }) {
  override get message(): string {
    return `answered ${this.status}`
  }
}

export const down = () => new GatewayDown({ status: 503 })

type Settings = Partial<BindingOptions.Settings<Uint8Array | null, string>>

/** A binding on `orders` with exact waits. */
export const binding = <E extends GatewayDown = never>(
  { handler }: Pick<TestHandler.TestHandler<Uint8Array | null, string, E>, "handler">,
  settings: Settings = {}
) =>
  Binding.make("orders", {
    topic: "orders",
    groupId: "billing",
    value: Serde.string,
    retry: RetryPolicy.tiered({ blocking: { jitter: 0 } }),
    ...settings,
    onError: () => Route.retry,
    handler
  })

export const failingTimes = (times: number) => TestHandler.failing<string, GatewayDown>({ times, error: down })

/** The message of `settled`, which must fail. */
export const stuck = TestBus.TestBus.use(({ settled }) => Effect.map(Effect.flip(settled), ({ message }) => message))

export const publish = (value: string, key = value) =>
  TestBus.TestBus.use((bus) => bus.publish("orders", { key, value }))
