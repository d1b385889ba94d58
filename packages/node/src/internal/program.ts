/** The layers of a bus: its consumers on the layers of the configuration, and what belongs beside them. */
import { Configuration } from "@eventbus/config"
import { EventBusConnector, IdempotencyStore } from "@eventbus/core"
import { Effect, Layer } from "effect"
import type { EventBusOptions } from "../EventBusOptions.ts"
import * as BusConfiguration from "./configuration.ts"
import * as Kafka from "./kafka.ts"
import * as Logging from "./logging.ts"
import * as Publishing from "./publishing.ts"

/** The services that the methods of a bus use. */
export type Services = EventBusConnector.EventBusConnector | Publishing.Publishing

/** Building it fails with `ConfigurationValidation`, which lists all mistakes, and then nothing was started. */
export const layer = (options: EventBusOptions): Layer.Layer<Services, unknown> => {
  const { kafka, clusters = {}, producer = {}, log = "text", extension = Layer.empty } = options
  const brokers = [...(kafka === undefined ? [] : [["default", kafka] as const]), ...Object.entries(clusters)]
  return extension.pipe(
    Layer.provideMerge(listening(options)),
    Layer.provideMerge(consumers(options)),
    // Handlers publish while they drain, so the producers close behind them.
    Layer.provideMerge(Publishing.layer(producer)),
    Layer.provide(Layer.suspend(() => Kafka.layer(brokers))),
    // The methods of the bus log as its consumers do.
    Layer.provideMerge(Logging.layer(log))
  )
}

const consumers = (options: EventBusOptions) =>
  Layer.unwrap(
    Effect.map(BusConfiguration.read(options), (configuration) =>
      Configuration.layer(configuration, BusConfiguration.handlersOf(options)).pipe(Layer.provide(storeOf(options)))
    )
  )

const listening = ({ onEvent }: EventBusOptions) =>
  onEvent === undefined
    ? Layer.empty
    : Layer.effectDiscard(EventBusConnector.EventBusConnector.use((connector) => connector.subscribe(onEvent)))

const storeOf = ({ idempotencyStore = "memory" }: EventBusOptions) =>
  idempotencyStore === "memory" ? IdempotencyStore.layerMemory() : idempotencyStore
