/** The layers of a bus: its consumers on the layers of the configuration, and what belongs beside them. */
import { Configuration } from "@eventbus/config"
import { EventBusConnector, IdempotencyStore } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { BusOutboxState } from "../BusOutbox.ts"
import type { EventBusOptions } from "../EventBusOptions.ts"
import * as BusConfiguration from "./configuration.ts"
import * as Kafka from "./kafka.ts"
import * as Logging from "./logging.ts"
import * as Publishing from "./publishing.ts"

/** The services that the methods of a bus use. */
export type Services = EventBusConnector.EventBusConnector | Publishing.Publishing | BusOutboxState

/** Building it fails with `ConfigurationValidation`, which lists all mistakes, and then nothing was started. */
export const layer = (options: EventBusOptions): Layer.Layer<Services, unknown> =>
  // The methods of the bus log as its consumers do.
  Layer.unwrap(Effect.map(BusConfiguration.read(options), (configuration) => checked(options, configuration))).pipe(
    Layer.provideMerge(Logging.layer(options.log ?? "text"))
  )

const checked = (options: EventBusOptions, configuration: Configuration.Configuration) => {
  const { kafka, clusters = {}, producer = {}, extension = Layer.empty } = options
  const brokers = [...(kafka === undefined ? [] : [["default", kafka] as const]), ...Object.entries(clusters)]
  const consumers = Configuration.layer(configuration, BusConfiguration.handlersOf(options))
  return extension.pipe(
    Layer.provideMerge(listening(options)),
    Layer.provideMerge(Layer.provide(consumers, storeOf(options))),
    // Handlers write events while they drain, so the dispatcher closes behind them.
    Layer.provideMerge(outboxOf(options)),
    // Handlers publish while they drain, so the producers close behind them.
    Layer.provideMerge(Publishing.layer(producer)),
    Layer.provide(Kafka.layer(brokers))
  )
}

const outboxOf = ({ outbox }: EventBusOptions) =>
  outbox === undefined ? Layer.succeed(BusOutboxState, { reason: () => undefined }) : outbox.layer

const listening = ({ onEvent }: EventBusOptions) =>
  onEvent === undefined
    ? Layer.empty
    : Layer.effectDiscard(EventBusConnector.EventBusConnector.use((connector) => connector.subscribe(onEvent)))

const storeOf = ({ idempotencyStore = "memory" }: EventBusOptions) =>
  idempotencyStore === "memory" ? IdempotencyStore.layerMemory() : idempotencyStore
