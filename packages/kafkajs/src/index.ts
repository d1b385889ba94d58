export * as KafkaJs from "./KafkaJs.ts"
