/** The operations on the bindings that this process runs. */
import type { Handlers } from "@eventbus/config"
import { type Broker, type EventBusConnector, EventBusError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { Payload } from "../../Mask.ts"
import * as AnswersOf from "../answersOf.ts"
import * as HeldOperations from "../held/heldOperations.ts"
import type { Shown } from "../masking.ts"
import * as MetricsSummary from "../metricsSummary.ts"
import * as Registration from "../registration.ts"
import * as Closing from "./closing.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

export const make = Effect.fnUntraced(function* <R>(
  connector: Connector,
  handlers: Handlers.Handlers<R> | undefined,
  shown: Shown
) {
  const context = yield* Effect.context<Broker.Broker | R>()
  const { isClosing, health } = yield* Closing.make(connector.health)

  const summary = (name: string) => Effect.map(connector.snapshot(name), (snapshot) => AnswersOf.summaryOf(snapshot))
  const get = Effect.fnUntraced(function* (name: string) {
    const snapshot = yield* connector.snapshot(name)
    return AnswersOf.detailOf(snapshot, yield* health, MetricsSummary.read(context, snapshot))
  })
  const register = (reading: Registration.Reading) =>
    isClosing() ? Effect.fail(Registration.refused(reading)) : Registration.run(reading, handlers, connector)
  const registered = (reading: Registration.Reading) =>
    Effect.suspend(() => register(reading)).pipe(
      Effect.flatMap((key) =>
        // Somebody has removed it in this moment: the connector, which closes, or another caller.
        Effect.mapError(summary(key), () => new EventBusError.ConnectorClosed({ binding: key }))
      ),
      Effect.provideContext(context)
    )

  const listWith = (payload: Payload) =>
    Effect.map(connector.listBindings, (all) =>
      AnswersOf.summariesOf(all, MetricsSummary.deadLetters(context), payload)
    )

  return {
    ...HeldOperations.make(connector, shown),
    list: listWith(false),
    listWithMessages: Effect.suspend(() => listWith(shown(true))),
    get,
    register: (properties: unknown) => registered(Registration.fromData(properties)),
    registerJson: (text: string) => registered(Registration.fromJson(text)),
    unregister: (name: string) =>
      Effect.gen(function* () {
        const last = yield* get(name)
        yield* connector.destroy(last.key)
        return { ...last, state: "DESTROYED" as const }
      }),
    start: (name: string) => Effect.andThen(connector.start(name), summary(name)),
    stop: (name: string) => Effect.andThen(connector.stop(name), summary(name)),
    pause: (name: string, tier?: EventBusConnector.TierOptions) =>
      Effect.andThen(connector.pause(name, tier), summary(name)),
    resume: (name: string, tier?: EventBusConnector.TierOptions) =>
      Effect.andThen(connector.resume(name, tier), summary(name)),
    health: Effect.map(health, AnswersOf.healthOf)
  }
})
