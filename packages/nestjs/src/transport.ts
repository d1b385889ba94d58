/** The transport that runs `@EventPattern` controllers of `@nestjs/microservices` on the connector. It needs the package `@nestjs/microservices`. */
export { EventBusContext } from "./EventBusContext.ts"
export { EventBusTransport, type EventBusTransportOptions } from "./EventBusTransport.ts"
export type { TopicOptions } from "./TopicOptions.ts"
