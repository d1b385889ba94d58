export * as Broker from "./Broker.ts"
export * as BrokerError from "./BrokerError.ts"
export * as ConsumerRecord from "./ConsumerRecord.ts"
export * as Partitioner from "./Partitioner.ts"
