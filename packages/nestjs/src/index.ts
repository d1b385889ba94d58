/**
 * The connector in a NestJS application: the module, the service that publishes, handlers by decorator, health. The transport for `@EventPattern` is `@eventbus/nestjs/transport`.
 */
export { EventBusModule, type EventBusModuleAsyncOptions, type EventBusModuleOptions } from "./EventBusModule.ts"
export { EventBusService, eventBusToken, InjectEventBus } from "./EventBusService.ts"
export { type HealthResult, liveness, readiness } from "./Health.ts"
export {
  KafkaBatchHandler,
  type KafkaBatchHandlerOptions,
  KafkaHandler,
  type KafkaHandlerOptions,
  KafkaTransactionHandler,
  type KafkaTransactionHandlerOptions
} from "./KafkaHandler.ts"
