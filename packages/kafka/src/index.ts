export * as Kafka from "./Kafka.ts"
export * as Secret from "./Secret.ts"
