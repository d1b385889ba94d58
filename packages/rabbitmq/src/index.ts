export * as RabbitMq from "./RabbitMq.ts"
export * as RabbitMqError from "./RabbitMqError.ts"
